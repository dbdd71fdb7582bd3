// Streams, events and captures.
#include "hip/calls.h"

#include "hip/queues.h"

#include <algorithm>
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

Node* Graph::add(NodeType type, std::vector<Node*> after, Work work) {
  nodes.push_back(std::make_unique<Node>(Node{type, std::move(after), std::move(work)}));
  return nodes.back().get();
}

Status Handles::make(void** p, int priority) {
  std::lock_guard<std::mutex> lock(mutex_);
  Handle* made = new Handle{&System::get().current(), priority, {}, {}, {}};
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

Status Handles::priority(void* stream, int* found) {
  if (found == nullptr) return fail(kInvalidValue, "there is no place for the priority");
  std::lock_guard<std::mutex> lock(mutex_);
  if (stream != nullptr && live_.count(stream) == 0) return fail(kInvalidHandle, "the stream is not there");
  *found = stream == nullptr ? 0 : static_cast<Handle*>(stream)->priority;
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
  const bool known = live_.count(stream) != 0;
  e->capture = known ? static_cast<Handle*>(stream)->capture : nullptr;
  e->last = known ? static_cast<Handle*>(stream)->last : std::vector<Node*>();
  return kSuccess;
}

Status Handles::wait(void* stream, void* event) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.count(event) == 0 || live_.count(stream) == 0) return kSuccess;
  const Handle* e = static_cast<Handle*>(event);
  if (e->capture == nullptr) return kSuccess;
  Handle* s = static_cast<Handle*>(stream);
  s->capture = e->capture;
  for (Node* n : e->last) {
    if (std::find(s->last.begin(), s->last.end(), n) == s->last.end()) s->last.push_back(n);
  }
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
  // what the stream has waited for, directly or not
  std::set<Node*> joined;
  std::vector<Node*> open = static_cast<Handle*>(stream)->last;
  while (!open.empty()) {
    Node* n = open.back();
    open.pop_back();
    if (joined.insert(n).second) open.insert(open.end(), n->after.begin(), n->after.end());
  }
  bool whole = true;
  for (void* p : live_) {
    Handle* h = static_cast<Handle*>(p);
    if (h->capture != graph) continue;
    for (Node* n : h->last) whole = whole && joined.count(n) != 0;
    h->capture = nullptr;
    h->last.clear();
  }
  return whole ? kSuccess : fail(kCaptureUnjoined, "a stream that the capture forked was not joined: wait for an event of it");
}

std::shared_ptr<Graph> Handles::capture(void* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return live_.count(stream) != 0 ? static_cast<Handle*>(stream)->capture : nullptr;
}

Handles& handles() {
  static Handles* found = new Handles;
  return *found;
}

bool Handles::keep(void* stream, NodeType type, Work& work) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_.count(stream) == 0) return false;
  Handle* s = static_cast<Handle*>(stream);
  if (s->capture == nullptr) return false;
  s->last = {s->capture->add(type, s->last, std::move(work))};
  return true;
}

Status enqueue(void* stream, NodeType type, Work work) {
  if (handles().keep(stream, type, work)) return kSuccess;
  return queues().on() ? queues().add(stream, std::move(work)) : work();
}

namespace {

std::mutex counts_mutex;
std::map<std::string, u64>& counts() {
  static auto* found = new std::map<std::string, u64>;
  return *found;
}

}  // namespace

void count_call(const char* name) {
  std::lock_guard<std::mutex> lock(counts_mutex);
  ++counts()[name];
}

std::map<std::string, u64> call_counts() {
  std::lock_guard<std::mutex> lock(counts_mutex);
  return counts();
}

}  // namespace mgx
