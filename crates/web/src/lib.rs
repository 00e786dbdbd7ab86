//! The simulator for a web page: requests and answers are JSON, passed as bytes through memory.
//!
//! The caller calls `room` with the length of its request, writes the request to the returned address, calls
//! `answer`, and reads `length` bytes at `place`. Answers are those of the command-line program, since no clock, file
//! or thread is involved.

mod machine;
mod questions;
mod replays;
mod run_outcome;

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Allocates room for a question of `bytes` bytes, and returns its address.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // The name is unique, since nothing else is linked into the module.
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(bytes, 0);
        question.as_mut_ptr()
    })
}

/// Answers the question. If this ends in a trap, the answer is the reason, and the module must not be used again.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // As for `room`.
pub extern "C" fn answer() {
    std::panic::set_hook(Box::new(|panic| {
        let words = serde_json::json!({ "failed": panic.to_string() }).to_string();
        ANSWER.with(|answer| answer.replace(words));
    }));
    let question = QUESTION.take();
    let words = questions::answered(&question);
    ANSWER.replace(words);
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // As for `room`.
pub extern "C" fn place() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Returns the length of the answer in bytes.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // As for `room`.
pub extern "C" fn length() -> usize {
    ANSWER.with_borrow(String::len)
}
