// Work of streams that runs when it is waited for.
#include "hip/queues.h"

namespace mgx {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

void* key_of(void* stream) { return reinterpret_cast<u64>(stream) <= 2 ? nullptr : stream; }

}  // namespace

Status Queues::add(void* stream, Work work) {
  Lock lock(mutex_);
  queues_[key_of(stream)].items.push_back({std::move(work), {}});
  return kSuccess;
}

void Queues::record(void* event, void* stream) {
  Lock lock(mutex_);
  const Queue& q = queues_[key_of(stream)];
  events_[event] = {key_of(stream), q.done + q.items.size()};
}

void Queues::wait(void* stream, void* event) {
  Lock lock(mutex_);
  const auto it = events_.find(event);
  if (it != events_.end()) queues_[key_of(stream)].items.push_back({nullptr, it->second});
}

// The places that an event may stand at lie behind each other, so that this ends.
void Queues::run(void* stream, u64 count) {
  Queue& q = queues_[stream];
  while (q.done < count && !q.items.empty()) {
    Item item = std::move(q.items.front());
    q.items.pop_front();
    ++q.done;
    if (!item.work) {
      run(item.place.stream, item.place.count);
      continue;
    }
    const Status found = item.work();
    if (status_ == kSuccess) status_ = found;
  }
}

Status Queues::finish_event(void* event) {
  Lock lock(mutex_);
  const auto it = events_.find(event);
  if (it != events_.end()) run(it->second.stream, it->second.count);
  return status_;
}

Status Queues::finish(void* stream) {
  Lock lock(mutex_);
  run(key_of(stream), ~u64{0});
  return status_;
}

Status Queues::finish_all() {
  Lock lock(mutex_);
  for (auto& [stream, q] : queues_) run(stream, ~u64{0});
  return status_;
}

bool Queues::reached(void* event) {
  Lock lock(mutex_);
  const auto it = events_.find(event);
  if (it == events_.end()) return true;
  const Place place = it->second;
  const u64 done = queues_[place.stream].done;
  if (done >= place.count) return true;
  run(place.stream, done + 1);
  return false;
}

bool Queues::is_empty(void* stream) {
  Lock lock(mutex_);
  Queue& q = queues_[key_of(stream)];
  if (q.items.empty()) return true;
  run(key_of(stream), q.done + 1);
  return false;
}

void Queues::forget_stream(void* stream) {
  Lock lock(mutex_);
  run(key_of(stream), ~u64{0});
}

void Queues::forget_event(void* event) {
  Lock lock(mutex_);
  events_.erase(event);
}

Queues& queues() {
  static Queues* found = new Queues;
  return *found;
}

}  // namespace mgx
