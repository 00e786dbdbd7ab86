//! [`Video`]: frames that must be read, rendered or written in time.

use serde::{Deserialize, Serialize};

use super::range::parts;
use super::step::{
    Facts, Step, StreamSetup, Turn, check_count, check_not_zero, check_sectors, io, per_second, read, write,
};
use crate::access::Complaint;
use crate::quantity::{bytes_u32, duration_u64};
use crate::span::Span;

/// A video stream. For each frame, the client reads a frame from each read track, renders on a processor, and then
/// writes a frame to each write track. Recording only writes, playback only reads, and effects do both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// Number of read tracks. Each track has an equal part of the range to itself.
    #[serde(default)]
    pub reads: u32,
    /// Number of write tracks.
    #[serde(default)]
    pub writes: u32,
    /// Processor time for each frame, in ns.
    #[serde(default, rename = "cpu", with = "duration_u64")]
    pub cpu_ns: u64,
    /// Size of a frame in bytes.
    #[serde(rename = "frame", with = "bytes_u32")]
    pub frame_bytes: u32,
    /// Frame rate; with `None`, frames follow each other without a pause. With a rate, frame f may start f periods
    /// after the start of the stream, and is dropped unless it completes within `buffer_frames` periods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_per_s: Option<f64>,
    /// Number of frames in the buffer, which is also the number of frames in progress at a time.
    pub buffer_frames: u32,
    /// Request size in bytes.
    #[serde(rename = "request", with = "bytes_u32")]
    pub request_bytes: u32,
    /// Queue depth of one frame.
    #[serde(default = "default_one")]
    pub queue_depth: u32,
    /// Number of frames after which the stream ends; `None` for an endless stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
}

fn default_one() -> u32 {
    1
}

impl Video {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        if self.reads == 0 && self.writes == 0 {
            return Err(("reads".to_owned(), "no tracks; reads or writes must be above 0".to_owned()));
        }
        for (key, tracks) in [("reads", self.reads), ("writes", self.writes)] {
            if tracks > 0 {
                check_count(key, tracks)?;
            }
        }
        check_count("buffer_frames", self.buffer_frames)?;
        check_count("queue_depth", self.queue_depth)?;
        check_not_zero("frame", u64::from(self.frame_bytes), "a frame has content")?;
        check_not_zero("request", u64::from(self.request_bytes), "a request has at least one sector")?;
        check_not_zero("frames", self.frames.unwrap_or(1), "omit the key for an endless stream")?;
        match self.frames_per_s {
            Some(rate) if !(rate > 0.0 && rate <= 1e6) => {
                let message = format!("{rate} is out of range; must be above 0 and at most 1e6");
                Err(("frames_per_s".to_owned(), message))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) struct VideoRun {
    stream: u32,
    video: Video,
    tracks: Vec<Span>,
    /// Size of a frame on a track in bytes, rounded to whole sectors.
    stride_bytes: u64,
    requests_per_frame: u64,
    frames_per_track: u64,
    /// Slots of the buffer. Each slot is a client that works on one frame at a time.
    slots: Vec<Slot>,
    /// Next frame, if there is no frame rate.
    next_frame: u64,
    complete: u64,
    dropped: u64,
}

struct Slot {
    frame: u64,
    /// Number of requests issued in this stage.
    issued: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Empty,
    Reads,
    Cpu,
    Writes,
}

impl VideoRun {
    pub(crate) fn new(video: &Video, setup: &StreamSetup) -> Result<VideoRun, Complaint> {
        check_sectors("request", video.request_bytes, setup.sector_bytes)?;
        let tracks = parts(setup.span, video.reads + video.writes, setup.sector_bytes);
        let stride_bytes = u64::from(video.frame_bytes).next_multiple_of(u64::from(setup.sector_bytes));
        let frames_per_track = tracks[0].length_bytes / stride_bytes;
        if frames_per_track == 0 {
            let message = format!("no frame fits in a track of {} bytes", tracks[0].length_bytes);
            return Err(("frame".to_owned(), message));
        }
        let slots = (0..u64::from(video.buffer_frames)).map(|frame| Slot { frame, issued: 0, stage: Stage::Empty });
        Ok(VideoRun {
            stream: setup.stream,
            video: *video,
            tracks,
            stride_bytes,
            requests_per_frame: stride_bytes.div_ceil(u64::from(video.request_bytes)),
            frames_per_track,
            slots: slots.collect(),
            next_frame: 0,
            complete: 0,
            dropped: 0,
        })
    }

    pub(crate) fn clients(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns when frame `frame` may start. A frame is due when the next frame in its slot may start.
    fn ready_ns(&self, frame: u64) -> u64 {
        self.video.frames_per_s.map_or(0, |rate| (frame as f64 * 1e9 / rate) as u64)
    }

    fn due_ns(&self, frame: u64) -> u64 {
        match self.video.frames_per_s {
            None => u64::MAX,
            Some(_) => self.ready_ns(frame + self.slots.len() as u64),
        }
    }

    pub(crate) fn next(&mut self, turn: Turn) -> Step {
        let index = turn.client as usize;
        loop {
            let Slot { frame, issued, stage } = self.slots[index];
            match stage {
                Stage::Empty => match self.begin(index, turn.now_ns) {
                    Some(step) => return step,
                    None => self.enter(index, Stage::Reads),
                },
                Stage::Reads | Stage::Writes => {
                    let reads = stage == Stage::Reads;
                    let (first, tracks) =
                        if reads { (0, self.video.reads) } else { (self.video.reads, self.video.writes) };
                    if issued < u64::from(tracks) * self.requests_per_frame {
                        if turn.in_flight == self.video.queue_depth {
                            return Step::Await;
                        }
                        self.slots[index].issued += 1;
                        let track = u64::from(first) + issued / self.requests_per_frame;
                        let (offset_bytes, length_bytes) =
                            self.place(track as usize, frame, issued % self.requests_per_frame);
                        let make = if reads { read } else { write };
                        return io(self.stream, make(offset_bytes, length_bytes));
                    }
                    if turn.in_flight > 0 {
                        return Step::Await;
                    }
                    if reads {
                        self.enter(index, Stage::Cpu);
                    } else {
                        self.finish(index, turn.now_ns);
                    }
                }
                Stage::Cpu => {
                    self.enter(index, Stage::Writes);
                    if self.video.cpu_ns > 0 {
                        return Step::Cpu { busy_ns: self.video.cpu_ns };
                    }
                }
            }
        }
    }

    /// Assigns the next frame to an empty slot. If no frame can start now, returns the slot's step instead.
    fn begin(&mut self, index: usize, now_ns: u64) -> Option<Step> {
        let end = self.video.frames.unwrap_or(u64::MAX);
        if self.video.frames_per_s.is_none() {
            self.slots[index].frame = self.next_frame;
            self.next_frame += 1;
        }
        // Skip frames that are overdue before they start.
        while self.slots[index].frame < end && self.due_ns(self.slots[index].frame) <= now_ns {
            self.dropped += 1;
            self.slots[index].frame += self.slots.len() as u64;
        }
        let frame = self.slots[index].frame;
        if frame >= end {
            return Some(Step::Done);
        }
        let ready_ns = self.ready_ns(frame);
        (now_ns < ready_ns).then_some(Step::Think { until_ns: ready_ns })
    }

    fn enter(&mut self, index: usize, stage: Stage) {
        let slot = &mut self.slots[index];
        (slot.stage, slot.issued) = (stage, 0);
    }

    fn finish(&mut self, index: usize, now_ns: u64) {
        let frame = self.slots[index].frame;
        if now_ns <= self.due_ns(frame) {
            self.complete += 1;
        } else {
            self.dropped += 1;
        }
        self.slots[index].frame += self.slots.len() as u64;
        self.enter(index, Stage::Empty);
    }

    /// Returns the offset and length of a request of a frame. A track starts over at its end.
    fn place(&self, track: usize, frame: u64, request: u64) -> (u64, u32) {
        let done_bytes = request * u64::from(self.video.request_bytes);
        let start_bytes = self.tracks[track].start_bytes + frame % self.frames_per_track * self.stride_bytes;
        let length_bytes = u64::from(self.video.request_bytes).min(self.stride_bytes - done_bytes);
        (start_bytes + done_bytes, length_bytes as u32)
    }

    pub(crate) fn start_measuring(&mut self) {
        (self.complete, self.dropped) = (0, 0);
    }

    pub(crate) fn facts(&self, seconds: f64, now_ns: u64) -> Facts {
        let overdue = self.slots.iter().filter(|slot| slot.stage != Stage::Empty && self.due_ns(slot.frame) < now_ns);
        Facts::Frames {
            complete: self.complete,
            dropped: self.dropped + overdue.count() as u64,
            frames_per_s: per_second(self.complete, seconds),
        }
    }
}
