// Streams, events and captures.
#include "hip/calls.h"

#include <cstdio>

namespace mgx {
namespace {

thread_local std::string message;
thread_local Status status_of_thread = kSuccess;

}  // namespace

Status fail(Status status, const std::string& text) {
  message = text;
  status_of_thread = status;
  std::fprintf(stderr, "emulator: %s\n", text.c_str());
  return status;
}

const std::string& last_message() { return message; }

Status take_last_status() {
  const Status found = status_of_thread;
  status_of_thread = kSuccess;
  return found;
}

Status Handles::make(void** p) {
  std::lock_guard<std::mutex> lock(mutex_);
  Handle* made = new Handle{&System::get().current(), {}, {}};
  live_.insert(made);
  *p = made;
  return kSuccess;
}

Status Handles::drop(void* p) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.erase(p) == 0) return fail(kInvalidHandle, "a stream, event or pool that is not there was destroyed");
  delete static_cast<Handle*>(p);
  return kSuccess;
}

Device* Handles::device(void* p) {
  if (reinterpret_cast<u64>(p) <= 2) return &System::get().current();
  std::lock_guard<std::mutex> lock(mutex_);
  return live_.count(p) != 0 ? static_cast<Handle*>(p)->device : nullptr;
}

Status Handles::record(void* event, void* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.count(event) == 0) return fail(kInvalidHandle, "the event is not there");
  Handle* e = static_cast<Handle*>(event);
  e->recorded = Clock::now();
  e->capture = live_.count(stream) != 0 ? static_cast<Handle*>(stream)->capture : nullptr;
  return kSuccess;
}

Status Handles::wait(void* stream, void* event) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.count(event) == 0 || live_.count(stream) == 0) return kSuccess;
  const Handle* e = static_cast<Handle*>(event);
  if (e->capture != nullptr) static_cast<Handle*>(stream)->capture = e->capture;
  return kSuccess;
}

Status Handles::elapsed(float* ms, void* from, void* to) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.count(from) == 0 || live_.count(to) == 0) return fail(kInvalidHandle, "the event is not there");
  const auto between = static_cast<Handle*>(to)->recorded - static_cast<Handle*>(from)->recorded;
  *ms = std::chrono::duration<float, std::milli>(between).count();
  return kSuccess;
}

Status Handles::begin_capture(void* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.count(stream) == 0) return fail(kCaptureUnsupported, "expected a stream that was created, a device's own is not captured");
  Handle* s = static_cast<Handle*>(stream);
  if (s->capture != nullptr) return fail(kIllegalState, "the stream is captured already");
  s->capture = std::make_shared<Graph>();
  return kSuccess;
}

Status Handles::end_capture(void* stream, std::shared_ptr<Graph>& graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.count(stream) == 0 || static_cast<Handle*>(stream)->capture == nullptr) {
    return fail(kIllegalState, "the stream is not captured");
  }
  graph = static_cast<Handle*>(stream)->capture;
  for (void* p : live_) {
    Handle* h = static_cast<Handle*>(p);
    if (h->capture == graph) h->capture = nullptr;
  }
  return kSuccess;
}

std::shared_ptr<Graph> Handles::capture(void* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return live_.count(stream) != 0 ? static_cast<Handle*>(stream)->capture : nullptr;
}

Handles& handles() {
  static Handles* found = new Handles;
  return *found;
}

Status enqueue(void* stream, Work work) {
  const std::shared_ptr<Graph> graph = handles().capture(stream);
  if (graph == nullptr) return work();
  graph->work.push_back(std::move(work));
  return kSuccess;
}

}  // namespace mgx
