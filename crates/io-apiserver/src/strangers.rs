//! Connections whose peers have not said who they are: a few of each address, and not for long.
//!
//! Whoever opens many keeps nobody else out: one too many ends the oldest of the same address, first of those that have
//! not even sent a ClientHello. A peer with a certificate is no stranger any more when its handshake is done, one with
//! a token after its first request.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// All strangers of a server.
pub(crate) struct Strangers {
    book: Mutex<Book>,
    most_of_one: usize,
    most: usize,
}

#[derive(Default)]
struct Book {
    next: u64,
    /// In the order they came.
    waiting: BTreeMap<u64, Stranger>,
    by_address: HashMap<IpAddr, usize>,
}

struct Stranger {
    address: IpAddr,
    /// It has sent a ClientHello.
    greeted: bool,
    /// Tells its connection to go.
    sender: oneshot::Sender<()>,
}

impl Book {
    fn take(&mut self, id: u64) -> Option<oneshot::Sender<()>> {
        let Stranger { address, sender, .. } = self.waiting.remove(&id)?;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(sender)
    }

    /// Who goes if there are too many: somebody silent rather than somebody in the middle of a handshake.
    fn first_to_go(&self, address: IpAddr) -> Option<u64> {
        let of_address = self.waiting.iter().filter(|(_, stranger)| stranger.address == address);
        of_address.min_by_key(|(id, stranger)| (stranger.greeted, **id)).map(|(id, _)| *id)
    }
}

/// The door of one connection, which its peer opens by saying who it is.
#[derive(Clone)]
pub(crate) struct Door(Arc<Place>);

struct Place {
    strangers: Arc<Strangers>,
    id: u64,
}

impl Door {
    /// The peer has sent a ClientHello.
    pub(crate) fn greeted(&self) {
        if let Some(stranger) = self.0.strangers.book().waiting.get_mut(&self.0.id) {
            stranger.greeted = true;
        }
    }

    /// The peer has proved who it is.
    pub(crate) fn open(&self) {
        // Dropping the sender is the news.
        drop(self.0.strangers.book().take(self.0.id));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.strangers.book().take(self.id));
    }
}

impl Strangers {
    /// At most so many of one address, and four times as many of all.
    pub(crate) fn new(most_of_one: usize) -> Arc<Strangers> {
        Arc::new(Strangers { book: Mutex::default(), most_of_one, most: most_of_one.saturating_mul(4) })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a new connection, and ends another if they become too many. The future ends when this one has to go.
    pub(crate) fn admit(
        self: &Arc<Strangers>,
        address: IpAddr,
        patience: Duration,
    ) -> (Door, impl Future<Output = ()> + use<>) {
        let (sender, told) = oneshot::channel();
        let mut book = self.book();
        let id = book.next;
        book.next += 1;
        book.waiting.insert(id, Stranger { address, greeted: false, sender });
        let of_one = book.by_address.entry(address).or_default();
        *of_one += 1;
        let crowd = if *of_one > self.most_of_one {
            Some(address)
        } else if book.waiting.len() > self.most {
            book.by_address.iter().max_by_key(|(_, count)| **count).map(|(address, _)| *address)
        } else {
            None
        };
        let goes = crowd.and_then(|address| book.first_to_go(address));
        let goes = goes.and_then(|id| book.take(id));
        drop(book);
        if let Some(goes) = goes {
            let _ = goes.send(());
        }
        let door = Door(Arc::new(Place { strangers: self.clone(), id }));
        let turned_away = async move {
            // Without an end to wait for once the door is open.
            if let Ok(Err(_opened)) = tokio::time::timeout(patience, told).await {
                std::future::pending::<()>().await;
            }
        };
        (door, turned_away)
    }
}
