//! ListVolumes and its pages.

use std::collections::BTreeSet;

use csi::{Code, v1};

use crate::CaseResult;
use crate::case::{T, cases, ensure, fail};
use crate::requests::{delete, page};

/// More pages than any driver under test has.
const ENDLESS: usize = 10_000;

/// The ids of all volumes, in one list.
pub async fn ids(t: &T) -> CaseResult<Vec<String>> {
    let answer = t.ok(page(0, "")).await?;
    Ok(answer.entries.into_iter().filter_map(|e| e.volume).map(|v| v.volume_id).collect())
}

/// The ids of all volumes, page by page.
async fn ids_in_pages(t: &T, size: i32) -> CaseResult<Vec<String>> {
    let mut ids = Vec::new();
    let mut token = String::new();
    for _ in 0..ENDLESS {
        let answer = t.ok(page(size, &token)).await?;
        let count = answer.entries.len();
        if count > usize::try_from(size).unwrap_or(usize::MAX) {
            return fail(format!("a page of {size} has {count} entries"));
        }
        ids.extend(answer.entries.into_iter().filter_map(|e| e.volume).map(|v| v.volume_id));
        if answer.next_token.is_empty() {
            return Ok(ids);
        }
        if answer.next_token == token {
            return fail("a page's next token leads to the page itself");
        }
        token = answer.next_token;
    }
    fail(format!("the list has not ended after {ENDLESS} pages"))
}

async fn volumes(t: &T, count: usize) -> CaseResult<BTreeSet<String>> {
    let mut made = BTreeSet::new();
    for _ in 0..count {
        made.insert(t.volume().await?.id);
    }
    Ok(made)
}

fn once(ids: &[String]) -> CaseResult {
    let mut seen = BTreeSet::new();
    match ids.iter().find(|id| !seen.insert(id.as_str())) {
        Some(id) => fail(format!("volume {id} is listed twice")),
        None => Ok(()),
    }
}

cases! {
    parity "controller/list/well-formed" [Controller(ListVolumes)]
    "Every entry is a volume with an id."
    |t| {
        for entry in t.ok(page(0, "")).await?.entries {
            let id = entry.volume.unwrap_or_default().volume_id;
            ensure!(!id.is_empty() && id.len() <= 128, "an entry has the id «{id}»");
        }
    }
    parity "controller/list/token-invalid" [Controller(ListVolumes)]
    "A token that the driver did not give is ABORTED, so that the caller begins again."
    |t| { t.refused(page(0, "longshore-no-such-token"), &[Code::Aborted], "with an invented token").await?; }
    parity "controller/list/follows-create-and-delete" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "A list has one entry more after a creation, and one less after a deletion."
    |t| {
        let before = ids(&t).await?.len();
        let volume = t.volume().await?;
        let between = ids(&t).await?;
        ensure!(between.len() == before + 1, "{before} volumes became {} by creating one", between.len());
        ensure!(between.contains(&volume.id), "the new volume is not listed");
        t.ok(delete(&volume.id)).await?;
        let after = ids(&t).await?;
        ensure!(after.len() == before && !after.contains(&volume.id), "the deleted volume is still listed");
    }
    parity "controller/list/pages-under-change" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "Volumes that exist from the first page to the last are listed exactly once, whatever else comes and goes."
    |t| {
        let lasting = volumes(&t, 4).await?;
        let passing = t.volume().await?;
        let first = t.ok(page(2, "")).await?;
        let mut token = first.next_token;
        let mut found: Vec<String> = first.entries.into_iter().filter_map(|e| e.volume).map(|v| v.volume_id).collect();
        t.ok(delete(&passing.id)).await?;
        t.volume().await?;
        let mut rounds = 0;
        while !token.is_empty() {
            rounds += 1;
            ensure!(rounds < ENDLESS, "the list does not end");
            match t.ask(page(2, &token)).await {
                Ok(answer) => {
                    found.extend(answer.entries.into_iter().filter_map(|e| e.volume).map(|v| v.volume_id));
                    token = answer.next_token;
                }
                // The caller begins again; that is honest.
                Err(status) if status.code == Code::Aborted => return Ok(()),
                Err(status) => return fail(format!("the next page was answered {}", crate::context::said(&status))),
            }
        }
        for id in &lasting {
            let times = found.iter().filter(|found| *found == id).count();
            if times == 0 {
                t.warn(format!("volume {id}, there all the time, fell out of the pages when another was deleted"));
            }
            ensure!(times < 2, "volume {id} is on two pages");
        }
    }
    beyond "controller/list/page-size" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "A page has no more entries than asked for, and says where the next begins."
    |t| {
        volumes(&t, 3).await?;
        let first = t.ok(page(2, "")).await?;
        ensure!(first.entries.len() <= 2, "a page of 2 has {} entries", first.entries.len());
        ensure!(!first.next_token.is_empty(), "3 volumes exist, a page of 2 says that it is the last");
    }
    beyond "controller/list/pages-complete" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "All pages together are the list, each volume once."
    |t| {
        let made = volumes(&t, 5).await?;
        let whole: BTreeSet<String> = ids(&t).await?.into_iter().collect();
        ensure!(made.is_subset(&whole), "the list lacks volumes that exist");
        for size in [1, 2, 3] {
            let paged = ids_in_pages(&t, size).await?;
            once(&paged)?;
            let paged: BTreeSet<String> = paged.into_iter().collect();
            ensure!(paged == whole, "{} volumes in one list are {} in pages of {size}", whole.len(), paged.len());
        }
    }
    beyond "controller/list/page-larger-than-all" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "A page that holds everything is the last."
    |t| {
        t.volume().await?;
        let answer = t.ok(page(i32::MAX, "")).await?;
        ensure!(answer.next_token.is_empty(), "a page of 2^31-1 entries says that more follow");
    }
    beyond "controller/list/negative-page" [Controller(ListVolumes)]
    "The size of a page is not negative."
    |t| { t.refused(page(-1, ""), &[Code::InvalidArgument], "with -1 entries a page").await?; }
    beyond "controller/list/page-repeated" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "A page can be asked for again when its answer was lost."
    |t| {
        volumes(&t, 3).await?;
        let token = t.ok(page(1, "")).await?.next_token;
        ensure!(!token.is_empty(), "3 volumes exist, a page of 1 says that it is the last");
        let names = |a: v1::ListVolumesResponse| a.entries.into_iter().filter_map(|e| e.volume).map(|v| v.volume_id).collect::<Vec<_>>();
        let (one, two) = (names(t.ok(page(1, &token)).await?), names(t.ok(page(1, &token)).await?));
        ensure!(one == two, "the same token leads to {one:?} and to {two:?}");
    }
    beyond "controller/list/no-duplicates" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "Each volume is listed once."
    |t| {
        volumes(&t, 3).await?;
        once(&ids(&t).await?)?;
    }
    beyond "controller/list/as-created" [Controller(CreateDeleteVolume), Controller(ListVolumes)]
    "A volume is listed as its creation was answered."
    |t| {
        let volume = t.volume().await?;
        let listed = t.ok(page(0, "")).await?.entries.into_iter().filter_map(|e| e.volume).find(|v| v.volume_id == volume.id);
        let Some(listed) = listed else { return fail("the new volume is not listed") };
        ensure!(listed.capacity_bytes == volume.capacity, "{} bytes were made, {} listed", volume.capacity, listed.capacity_bytes);
    }
    beyond "controller/list/while-creating" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "Lists stay whole while volumes are made."
    |t| {
        let made = volumes(&t, 2).await?;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let t = t.clone();
            tasks.spawn(async move { t.volume().await.map(|_| ()) });
        }
        for _ in 0..10 {
            let listed = ids(&t).await?;
            once(&listed)?;
            ensure!(made.iter().all(|id| listed.contains(id)), "a volume is missing while others are made");
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap_or_else(|_| fail("a call panicked"))?;
        }
    }
}
