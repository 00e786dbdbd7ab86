//! The simulator in a page: questions and answers are JSON, passed as bytes through memory.
//!
//! Who asks calls `room` with the length of its question, writes it there, calls `answer`, and reads `length` bytes at
//! `place`. What is answered is what the program itself would: no clock, no file, no thread is used.

mod machine;
mod questions;
mod replays;
mod told;

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Room for a question of so many bytes.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // The name is the only one of its kind: nothing else is linked into the module.
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(bytes, 0);
        question.as_mut_ptr()
    })
}

/// Answers the question. Where that ends in a trap, the answer says why; the module is of no use then.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // As of `room`.
pub extern "C" fn answer() {
    std::panic::set_hook(Box::new(|panic| {
        let words = serde_json::json!({ "failed": panic.to_string() }).to_string();
        ANSWER.with(|answer| answer.replace(words));
    }));
    let question = QUESTION.take();
    let words = questions::answered(&question);
    ANSWER.replace(words);
}

/// Where the answer is.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // As of `room`.
pub extern "C" fn place() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Bytes of the answer.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // As of `room`.
pub extern "C" fn length() -> usize {
    ANSWER.with_borrow(String::len)
}
