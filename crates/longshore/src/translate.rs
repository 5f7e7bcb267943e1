//! `longshore translate`: objects of in-tree plugins as their CSI drivers see them, and back.
//!
//! The rules know an object in the fields they read. What they change is carried over into the object as it was
//! written, so that fields nobody here knows survive.

use std::path::PathBuf;
use std::process::ExitCode;

use api::{PersistentVolume, Pod, StorageClass, VolumeAttachment, VolumeSpec};
use clap::{Args, ValueEnum};
use rules_translate::{Plugin, Translated};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::dump::{each_document, each_file};
use crate::out;

/// `longshore translate`.
#[derive(Args, Clone)]
pub struct Translate {
    /// The objects, in YAML or JSON: files, directories, tar archives, or `-` for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub files: Vec<PathBuf>,
    /// Only this way [default: every object into its other form]
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Option<Form>,
    /// How to print
    #[arg(long, short, value_enum, default_value = "yaml")]
    pub output: Format,
}

/// What to translate into.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the CSI driver sees it
    Csi,
    /// As the in-tree plugin wrote it
    InTree,
}

/// How to print.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML
    Yaml,
    /// JSON
    Json,
}

/// Prints the objects, and on standard error what the other form has no word for. All objects or none: what is printed
/// is meant for `kubectl apply` and the like, which cannot know what is missing. Each object that is not to be
/// translated is named, with one sentence.
pub fn command(args: &Translate) -> ExitCode {
    match text(args) {
        Ok((text, notes)) => {
            notes.iter().for_each(|note| out::complain(note));
            out::say(text.trim_end());
            ExitCode::SUCCESS
        }
        Err(problems) => {
            problems.iter().for_each(|problem| out::complain(problem));
            ExitCode::from(2)
        }
    }
}

fn text(args: &Translate) -> Result<(String, Vec<String>), Vec<String>> {
    let one = |problem| vec![problem];
    let mut work = Work { to: args.to, notes: Vec::new(), problems: Vec::new() };
    let mut printed = Vec::new();
    for object in read(args).map_err(one)? {
        for object in work.object(object) {
            printed.push(print(&object, args.output).map_err(one)?);
        }
    }
    if !work.problems.is_empty() {
        return Err(work.problems);
    }
    let between = match args.output {
        Format::Yaml => "---\n",
        Format::Json => "",
    };
    Ok((printed.join(between), work.notes))
}

fn read(args: &Translate) -> Result<Vec<Value>, String> {
    let mut objects = Vec::new();
    each_file(&args.files, &mut |name, text| {
        each_document(name, text, &mut |value| {
            objects.push(value);
            Ok(())
        })
    })?;
    if objects.is_empty() {
        let names = args.files.iter().map(|file| match file.as_os_str() == "-" {
            true => "standard input".to_string(),
            false => file.display().to_string(),
        });
        let names: Vec<String> = names.collect();
        let what = "give a PersistentVolume, StorageClass, VolumeAttachment or Pod";
        return Err(format!("{} holds no object; {what}", names.join(", ")));
    }
    Ok(objects)
}

fn print(object: &Value, format: Format) -> Result<String, String> {
    let printed = match format {
        Format::Yaml => serde_saphyr::to_string(object).ok(),
        Format::Json => serde_json::to_string_pretty(object).ok(),
    };
    let mut printed = printed.ok_or("an object cannot be printed")?;
    if !printed.ends_with('\n') {
        printed.push('\n');
    }
    Ok(printed)
}

/// The object in its other form, unless it is to stay as it is.
type Attempt<T> = Option<Result<Translated<T>, rules_translate::Error>>;

struct Work {
    to: Option<Form>,
    notes: Vec<String>,
    /// What is wrong with the objects.
    problems: Vec<String>,
}

impl Work {
    /// One object, and what a pod holds itself as volumes of their own behind it; nothing of one that is not to be
    /// translated, which is kept in mind.
    fn object(&mut self, object: Value) -> Vec<Value> {
        match self.translated(object) {
            Ok(objects) => objects,
            Err(problem) => {
                self.problems.push(problem);
                Vec::new()
            }
        }
    }

    fn translated(&mut self, mut object: Value) -> Result<Vec<Value>, String> {
        let kind = object["kind"].as_str().unwrap_or_default().to_string();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_string();
        let what = format!("{kind} {name}");
        if kind.is_empty() {
            return Err("there is an object without a kind; every object needs apiVersion and kind".into());
        }
        if kind.ends_with("List")
            && let Some(Value::Array(items)) = object.get_mut("items")
        {
            *items = std::mem::take(items).into_iter().flat_map(|item| self.object(item)).collect();
            return Ok(vec![object]);
        }
        match kind.as_str() {
            "PersistentVolume" => self.change(&what, &mut object, Work::volume)?,
            "StorageClass" => self.change(&what, &mut object, Work::class)?,
            "VolumeAttachment" => self.change(&what, &mut object, Work::attachment)?,
            "Pod" => {
                let own = self.pod(&what, &object)?;
                return Ok(std::iter::once(object).chain(own).collect());
            }
            _other => {}
        }
        Ok(vec![object])
    }

    /// Translates what the rules know of an object, and carries the difference over into the whole of it.
    fn change<T: DeserializeOwned + Serialize>(
        &mut self,
        what: &str,
        object: &mut Value,
        translate: fn(&Work, &T) -> Attempt<T>,
    ) -> Result<(), String> {
        let known: T = narrow(what, object)?;
        let Some(translated) = translate(self, &known) else { return Ok(()) };
        let translated = translated.map_err(|error| format!("{what}: {error}"))?;
        self.notes.extend(translated.lost.iter().map(|lost| format!("{what}: {lost}")));
        let json = |known: &T| serde_json::to_value(known).map_err(|error| format!("{what}: {error}"));
        carry_over(object, &json(&known)?, &json(&translated.object)?);
        Ok(())
    }

    fn volume(&self, volume: &PersistentVolume) -> Attempt<PersistentVolume> {
        let ours = |driver: &str| Plugin::of_driver(driver).is_some();
        match (&volume.spec.in_tree, &volume.spec.csi) {
            (Some(_), _) if self.to != Some(Form::InTree) => Some(rules_translate::volume_to_csi(volume)),
            (None, Some(csi)) if self.to != Some(Form::Csi) && ours(&csi.driver) => {
                Some(rules_translate::volume_to_in_tree(volume))
            }
            (Some(_), _) | (None, Some(_) | None) => None,
        }
    }

    fn class(&self, class: &StorageClass) -> Attempt<StorageClass> {
        let to_csi = Plugin::named(&class.provisioner).is_some() && self.to != Some(Form::InTree);
        let to_in_tree = Plugin::of_driver(&class.provisioner).is_some() && self.to != Some(Form::Csi);
        match (to_csi, to_in_tree) {
            (true, _) => Some(rules_translate::class_to_csi(class)),
            (false, true) => Some(rules_translate::class_to_in_tree(class)),
            (false, false) => None,
        }
    }

    /// An attachment that holds its volume itself.
    fn attachment(&self, attachment: &VolumeAttachment) -> Attempt<VolumeAttachment> {
        let spec: &VolumeSpec = attachment.spec.source.inline_volume_spec.as_ref()?;
        let alone = PersistentVolume { spec: spec.clone(), ..PersistentVolume::default() };
        let translated = self.volume(&alone)?;
        Some(translated.map(|Translated { object, lost }| {
            let mut attachment = attachment.clone();
            attachment.spec.source.inline_volume_spec = Some(Box::new(object.spec));
            Translated { object: attachment, lost }
        }))
    }

    /// The in-tree volumes a pod holds itself, as its attachments hold them.
    fn pod(&mut self, what: &str, object: &Value) -> Result<Vec<Value>, String> {
        let pod: Pod = narrow(what, object)?;
        let mut own = Vec::new();
        let volumes = pod.spec.volumes.iter().filter(|volume| volume.in_tree.is_some());
        for volume in volumes.filter(|_| self.to != Some(Form::InTree)) {
            let translated = rules_translate::inline_to_csi(volume, &pod.metadata.namespace);
            let translated = translated.map_err(|error| format!("{what}: {error}"))?;
            self.notes.extend(translated.lost.iter().map(|lost| format!("{what}: {lost}")));
            own.push(api::Object::from(translated.object).to_json());
        }
        Ok(own)
    }
}

/// What the rules know of an object. A field that is null is not there.
fn narrow<T: DeserializeOwned>(what: &str, object: &Value) -> Result<T, String> {
    fn without_nulls(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let set = fields.iter().filter(|(_, value)| !value.is_null());
                Value::Object(set.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
    serde_json::from_value(without_nulls(object)).map_err(|error| format!("{what} is not as the API has it: {error}"))
}

/// Makes the same changes to an object that made `after` of `before`.
fn carry_over(object: &mut Value, before: &Value, after: &Value) {
    let (Value::Object(was), Value::Object(is)) = (before, after) else {
        *object = after.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else { return };
    for key in was.keys().filter(|key| !is.contains_key(*key)) {
        fields.remove(key);
    }
    for (key, value) in is.iter().filter(|(key, value)| was.get(*key) != Some(*value)) {
        let nothing = Value::Null;
        carry_over(fields.entry(key.clone()).or_insert(Value::Null), was.get(key).unwrap_or(&nothing), value);
    }
}
