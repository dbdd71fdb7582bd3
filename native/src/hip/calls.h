// What the HIP functions share: status codes, the last error, streams and events, work that is
// captured instead of run.
#pragma once

#include <chrono>
#include <functional>
#include <set>

#include "hip/system.h"

#define API extern "C" __attribute__((visibility("default")))

namespace mgx {

// hipError_t
enum Status {
  kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101, kInvalidContext = 201,
  kNoBinaryForGpu = 209, kInvalidHandle = 400, kIllegalState = 401, kNotFound = 500, kLaunchFailure = 719,
  kCooperativeTooLarge = 720, kNotSupported = 801, kCaptureUnsupported = 900
};

// Keeps the text of an error for hipGetErrorString, and prints it.
Status fail(Status status, const std::string& message);
const std::string& last_message();
// The last status that is no success, once.
Status take_last_status();

using Work = std::function<Status()>;
// What a stream was given while it was captured, in order.
struct Graph {
  std::vector<Work> work;
};

using Clock = std::chrono::steady_clock;

// What a stream, event or pool is here: where it was made, when an event was recorded, and what is
// being captured.
struct Handle {
  Device* device;
  Clock::time_point recorded;
  std::shared_ptr<Graph> capture;
};

class Handles {
 public:
  Status make(void** p);
  Status drop(void* p);
  // nullptr: it is not there. Null, and the first numbers, are the current device's own streams.
  Device* device(void* p);
  Status check(void* p) { return device(p) != nullptr ? kSuccess : fail(kInvalidHandle, "the stream, event or pool is not there"); }
  // An event on a stream that is captured belongs to the capture; who waits for it joins it.
  Status record(void* event, void* stream);
  Status wait(void* stream, void* event);
  Status elapsed(float* ms, void* from, void* to);

  Status begin_capture(void* stream);
  // Ends the capture of all streams that joined it.
  Status end_capture(void* stream, std::shared_ptr<Graph>& graph);
  std::shared_ptr<Graph> capture(void* stream);

 private:
  std::mutex mutex_;
  std::set<void*> live_;
};

Handles& handles();

// Runs work that a stream is given, or keeps it where the stream is captured.
Status enqueue(void* stream, Work work);

}  // namespace mgx
