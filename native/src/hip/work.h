// What streams and graphs are given to do: copies, fills, launches.
#pragma once

#include "hip/calls.h"

namespace mgx {

// Errors: bytes beyond an allocation.
Status copy(void* to, const void* from, std::size_t n);

template <class T>
Status fill(void* to, T value, std::size_t count) {
  if (!System::get().holds(to, count * sizeof(T))) return fail(kInvalidValue, "a fill goes beyond its allocation");
  for (auto& d : System::get().devices()) d->memory().mark_written(to, count * sizeof(T));
  T* p = static_cast<T*>(to);
  for (std::size_t n = 0; n < count; ++n) p[n] = value;
  return kSuccess;
}

// A launch with its arguments as they are now: of pointers to each, or of `extra`, which holds the
// whole segment.
Work kernel_work(const Function* f, Grid groups, Grid threads, u32 lds, void** arguments, void** extra);

}  // namespace mgx
