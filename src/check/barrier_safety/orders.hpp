// src/check/barrier_safety/orders.hpp - every order in which threads come to barriers
#pragma once

#include <cstdint>
#include <vector>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

/// A step of threads that do the same.
struct Step {
  enum class Kind : std::uint8_t { Arrive, Choice, End } kind = Kind::End;
  bool waits = true;
  bool aligned = true;
  bool shared = false;          ///< Choice: all roles come to it, and choose the same
  std::uint32_t statement = 0;  ///< of the barrier; Choice: of the branch
  std::uint32_t id = 0;
  std::uint32_t count = 0;          ///< Arrive: threads, never 0
  std::vector<std::uint32_t> next;  ///< one, or the choices
};

/// Threads that do the same, step by step.
struct Role {
  Threads threads;
  std::uint32_t size = 0;  ///< with the lanes that the last warp lacks
  std::uint32_t first = 0;
  std::vector<Step> steps;
};

/// Whether every order of the roles' steps brings all of them to their end, each barrier completed
/// by exactly the threads that it counts. False as well if that is too much to look at. Lanes of a
/// warp come to a block's barrier together; `within_warp`, only to aligned steps.
[[nodiscard]] bool every_order_ends(std::vector<Role> roles, std::uint32_t threads,
                                    bool within_warp);

}  // namespace ptxgen::inline v0::gates::barriers
