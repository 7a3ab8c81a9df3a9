// src/check/barrier_safety/orders.hpp - all orders of arrivals at barriers
#pragma once

#include <cstdint>
#include <vector>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

/// One step of a role.
struct Step {
  enum class Kind : std::uint8_t { Arrive, Choice, End } kind = Kind::End;
  bool waits = true;
  bool aligned = true;
  bool shared = false;          ///< Choice: all roles reach it and choose the same
  std::uint32_t statement = 0;  ///< of the barrier; Choice: of the branch
  std::uint32_t id = 0;
  std::uint32_t count = 0;          ///< Arrive: threads, never 0
  std::vector<std::uint32_t> next;  ///< one, or the choices
};

/// Threads with the same sequence of steps.
struct Role {
  Threads threads;
  std::uint32_t size = 0;  ///< threads, rounded up to the whole last warp
  std::uint32_t first = 0;
  std::vector<Step> steps;
};

/// Whether all roles reach their end in every order of steps, with each barrier completed by
/// exactly the threads that it counts. False also if there are too many orders to examine. Lanes of
/// a warp arrive at a block's barrier together; with `within_warp`, only at aligned steps.
[[nodiscard]] bool every_order_ends(std::vector<Role> roles, std::uint32_t threads,
                                    bool within_warp);

}  // namespace ptxgen::inline v0::gates::barriers
