//! The simulator in a web page: questions and answers are JSON, passed as bytes through memory.
//!
//! The caller calls `room` with the length of its question, writes it there, calls `answer`, and reads `length` bytes
//! at `place`. Answers are the same as the program's: no clock, no file, no thread is used.

mod machine;
mod questions;
mod replays;
mod run_outcome;

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Allocates room for a question of `bytes` bytes.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // The name is the only one of its kind: nothing else is linked into the module.
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(bytes, 0);
        question.as_mut_ptr()
    })
}

/// Answers the question. If this ends in a trap, the answer is the reason; the module cannot be used any more then.
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

/// Address of the answer.
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
