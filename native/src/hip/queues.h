// Queues of streams: work that runs when it is waited for, as late as HIP allows (MGX_EMULATE_QUEUES).
// What a program reads without waiting for it is then not there, on every run.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "hip/calls.h"

namespace mgx {

class Queues {
 public:
  bool on() const { return System::get().settings().queues; }
  // Work behind all that the stream was given. Null, and the first numbers, are the device's own.
  Status add(void* stream, Work work);
  // An event is where a stream is; who waits for it waits for that.
  void record(void* event, void* stream);
  void wait(void* stream, void* event);
  // Run until a stream has come to an event, until it has nothing left, or until none has.
  // Errors: that of the first work that failed, from then on.
  Status finish_event(void* event);
  Status finish(void* stream);
  Status finish_all();
  // Runs one piece of work; whether there was nothing left ahead of the event, or in the stream.
  bool reached(void* event);
  bool is_empty(void* stream);
  void forget_stream(void* stream);
  void forget_event(void* event);

 private:
  struct Place {
    void* stream;
    u64 count;  // pieces of work of the stream that must have run
  };
  struct Item {
    Work work;  // or a wait, where it is empty
    Place place;
  };
  struct Queue {
    std::deque<Item> items;
    u64 done = 0;
  };

  void run(void* stream, u64 count);

  std::recursive_mutex mutex_;  // a host function may call HIP
  std::map<void*, Queue> queues_;
  std::map<void*, Place> events_;
  Status status_ = kSuccess;
};

Queues& queues();

}  // namespace mgx
