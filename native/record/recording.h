// A recording, and what of it is equal for HIP and CUDA. A library includes it once.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1;

// Nodes one behind the other, as the streams were given their work.
struct Recording {
  void *graph = nullptr, *executable = nullptr, *last = nullptr;
  std::uint64_t nodes = 0, bytes = 0;  // device memory that the recorded call allocated
  int status = kSuccess;
  bool on_host = false;                       // the host was given memory or values meanwhile
  std::set<void*> freed;                      // memory of the recorded call, kept for the graph
  std::vector<std::unique_ptr<char[]>> host;  // bytes of the host, as they were
  // the last launch: its stream, and an event behind it that launches on other streams wait for
  void *stream = nullptr, *done = nullptr;
  bool is_pending = false;
};

// Bytes that a launch copies to or from the graph's own memory.
struct Copy {
  void* to;
  const void* from;
  std::size_t size;
};

std::mutex mutex;
Recording* now = nullptr;
std::map<void*, Recording*>& memory() {  // allocated by recorded calls
  static auto* found = new std::map<void*, Recording*>;
  return *found;
}

int hold(void** p, std::size_t size, int status) {
  std::lock_guard<std::mutex> lock(mutex);
  if (now != nullptr && status == kSuccess) {
    memory()[*p] = now;
    now->bytes += size;
  }
  return status;
}

void with_host() {
  std::lock_guard<std::mutex> lock(mutex);
  if (now != nullptr) now->on_host = true;
}

// Whether memory is a recording's: its graph works in it until the recording is dropped.
bool is_held(void* p) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto it = memory().find(p);
  if (it == memory().end()) return false;
  it->second->freed.insert(p);
  return true;
}

// Host bytes that a node copies, as they are now.
const void* kept(const void* from, std::size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  if (now == nullptr) return from;
  now->host.emplace_back(new char[size]);
  std::memcpy(now->host.back().get(), from, size);
  return now->host.back().get();
}

// What a library calls of its driver, for a launch behind copies.
struct Launcher {
  int (*copy)(void* to, const void* from, std::size_t size, void* stream);
  int (*launch)(void* executable, void* stream);
  int (*wait)(void* stream);
  int (*behind)(void* stream, void* event);
  int (*record)(void** event, void* stream);  // makes the event where there is none
};

// Copies inputs, launches, copies results; on return it is done where `wait` says so.
int replay(const Launcher& by, Recording& r, void* stream, const Copy* in, std::size_t n_in, const Copy* out, std::size_t n_out,
           bool wait) {
  int status = kSuccess;
  // another stream may be about to read or write the graph's memory
  if (r.is_pending && r.stream != stream) status = by.behind(stream, r.done);
  for (std::size_t i = 0; i < n_in && status == kSuccess; ++i)
    if (in[i].size != 0) status = by.copy(in[i].to, in[i].from, in[i].size, stream);
  if (status == kSuccess && r.nodes != 0) status = by.launch(r.executable, stream);
  for (std::size_t i = 0; i < n_out && status == kSuccess; ++i)
    if (out[i].size != 0) status = by.copy(out[i].to, out[i].from, out[i].size, stream);
  if (status != kSuccess) return status;
  r.is_pending = !wait;
  if (wait) return by.wait(stream);
  r.stream = stream;
  return by.record(&r.done, stream);
}

}  // namespace
