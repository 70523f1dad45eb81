// What an engine stands on: the ranks that live in this process, their device and memory, and how
// they reach each other and the ranks of other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/cancellation.h"
#include "runtime/device/device.h"
#include "runtime/memory/account.h"

namespace piper {

class Backend {
 public:
  virtual ~Backend() = default;

  // Ascending. Everything below is by place in this list, where it is by local rank.
  virtual const std::vector<std::uint32_t>& local_ranks() const = 0;

  virtual Device& device() = 0;
  // What a local rank holds and has held: memory is allocated with LibTorch, on the device.
  virtual const std::shared_ptr<Account>& account(std::size_t local) const = 0;
  // First thing on each thread that launches for a local rank.
  virtual void enter(std::size_t local) = 0;

  // The communicators of a plan, by local rank. Each process calls it for the same plans in the
  // same order, before the first step; what two plans of a job have in common is made once.
  virtual std::vector<Communications> connect(const Plan& plan) = 0;

  // Between steps, called by each process in the same order: what rank `from` has at `data` comes
  // to rank `to`, at `into`. Either is host memory, and null where that rank lives elsewhere.
  virtual void bring(std::uint32_t from, const void* data, std::uint32_t to, void* into,
                     std::size_t bytes) = 0;

  // Ends what the local ranks are doing; what they wait for throws Cancelled.
  virtual Cancellation& cancellation() = 0;
};

}  // namespace piper
