//! `longshore migrate`: what moving in-tree volumes to CSI drivers takes, and how far it has come.
//!
//! `rules-migrate` decides; this reads a cluster or a dump and prints. Nothing is ever written, here or there.

mod html;
mod progress;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use io_kube::Kube;
use rules_migrate::{Item, MigrationPlan, MigrationVerdict, Survey};
use serde::Serialize;

use crate::dump::{Found, each_file, each_object};
use crate::out;
use progress::ReadProgress;

/// `longshore migrate`.
#[derive(Args, Clone)]
#[command(after_help = "What to read: dumps, or `-` for standard input, such as of `kubectl get \
pv,pvc,sc,csinode,csidriver,volumeattachment,node,pod -A -o yaml`; or a cluster with --kubeconfig or $KUBECONFIG. \
Nothing is ever written. docs/migration.md is the playbook.")]
pub struct Migrate {
    /// What to do.
    #[command(subcommand)]
    pub command: MigrateCommand,
}

/// What to do.
#[derive(Subcommand, Clone)]
pub enum MigrateCommand {
    /// Say what each in-tree object becomes, what stands in the way, the steps in their order, and how to go back
    Plan(PlanArgs),
    /// Say how far a migration has come and what does not fit together; exits with 0 if all fits, 1 if not, 3 if too
    /// little is known
    Check(CheckArgs),
}

/// What to read.
#[derive(Args, Clone)]
pub struct Input {
    /// Dumps in YAML or JSON: files, directories, tar archives, or `-` for standard input
    #[arg(value_name = "DUMP")]
    pub files: Vec<PathBuf>,
    /// The cluster to read instead
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub kubeconfig: Option<PathBuf>,
}

/// `longshore migrate plan`.
#[derive(Args, Clone)]
pub struct PlanArgs {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// Name every object too, and what it becomes
    #[arg(long)]
    pub details: bool,
    /// How to print
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: PlanOutput,
}

/// `longshore migrate check`.
#[derive(Args, Clone)]
pub struct CheckArgs {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// How to print
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: crate::args::Output,
}

/// How to print a plan.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum PlanOutput {
    /// For people
    Text,
    /// For programs
    Json,
    /// One page to hand around
    Html,
}

/// A plan as it is printed for programs.
#[derive(Serialize)]
struct Printed<'a> {
    verdict: MigrationVerdict,
    #[serde(flatten)]
    plan: &'a MigrationPlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<Vec<&'a Item>>,
}

/// Reads and prints. Whatever is wrong with the input is one sentence, and then nothing is printed.
pub async fn command(args: Migrate) -> anyhow::Result<ExitCode> {
    let input = match &args.command {
        MigrateCommand::Plan(plan) => &plan.input,
        MigrateCommand::Check(check) => &check.input,
    };
    let survey = match read(input).await {
        Ok(survey) => survey,
        Err(sentence) => {
            out::complain(&sentence);
            return Ok(ExitCode::from(2));
        }
    };
    let plan = survey.plan();
    match &args.command {
        MigrateCommand::Plan(args) => {
            let items = |wanted: bool| wanted.then(|| survey.items());
            match args.output {
                PlanOutput::Text => out::say(text::plan(&plan, items(args.details).as_deref()).trim_end()),
                PlanOutput::Json => {
                    let printed = Printed { verdict: plan.verdict(), plan: &plan, objects: items(args.details) };
                    out::say(&serde_json::to_string_pretty(&printed)?);
                }
                PlanOutput::Html => out::say(&html::page(&plan, &survey.items())),
            }
            Ok(ExitCode::SUCCESS)
        }
        MigrateCommand::Check(args) => {
            match args.output {
                crate::args::Output::Text => out::say(text::check(&plan).trim_end()),
                crate::args::Output::Json => {
                    let printed = Printed { verdict: plan.verdict(), plan: &plan, objects: None };
                    out::say(&serde_json::to_string_pretty(&printed)?);
                }
            }
            Ok(match plan.verdict() {
                MigrationVerdict::Consistent => ExitCode::SUCCESS,
                MigrationVerdict::Inconsistent => ExitCode::from(1),
                MigrationVerdict::Unknown => ExitCode::from(3),
            })
        }
    }
}

/// Reads a cluster or a dump. An error is a sentence.
async fn read(input: &Input) -> Result<Survey, String> {
    let from_environment = || std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    match (&input.kubeconfig, &input.files[..]) {
        (Some(path), _) => cluster(path.clone()).await,
        (None, []) => match from_environment() {
            Some(path) => cluster(path).await,
            None => Err("there is nothing to read; name a dump, or - for standard input, or a cluster with \
                         --kubeconfig"
                .into()),
        },
        (None, files) => dump(files),
    }
}

async fn cluster(kubeconfig: PathBuf) -> Result<Survey, String> {
    let kube = Kube::from_kubeconfig(&kubeconfig).await.map_err(|error| out::sentence(&error.into()))?;
    let mut survey = Survey::default();
    let mut progress = ReadProgress::new();
    for kind in Survey::KINDS {
        let before = survey.seen();
        let listed = kube.list_by_pages(kind, &mut |read| progress.tell(before + read)).await;
        let (_, objects) = listed.map_err(|error| {
            out::sentence(&anyhow::Error::from(error).context(format!("cannot list objects of kind {kind}")))
        })?;
        survey.asked_for(kind);
        objects.iter().for_each(|object| survey.add(object));
    }
    Ok(survey)
}

fn dump(files: &[PathBuf]) -> Result<Survey, String> {
    let mut survey = Survey::default();
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    let mut progress = ReadProgress::new();
    each_file(files, &mut |name, text| {
        each_object(name, text, &Survey::KINDS, &mut |found| {
            match found {
                Found::Object(object) => survey.add(&object),
                Found::Other(kind) => *others.entry(kind).or_default() += 1,
            }
            progress.tell(survey.seen());
            Ok(())
        })
    })?;
    drop(progress);
    let passed: Vec<String> = others.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if survey.seen() == 0 {
        let wanted = Survey::KINDS.map(|kind| kind.name()).join(", ");
        return Err(match passed.is_empty() {
            true => format!("there is no object to read; a plan is drawn from {wanted}"),
            false => {
                format!("there are only objects of other kinds ({}); a plan is drawn from {wanted}", passed.join(", "))
            }
        });
    }
    if !passed.is_empty() {
        out::complain(&format!("passed over, because a plan is not drawn from them: {}", passed.join(", ")));
    }
    Ok(survey)
}
