// src/check/barrier_safety/orders.cpp - all orders of arrivals at barriers
#include "check/barrier_safety/orders.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>

namespace ptxgen::inline v0::gates::barriers {

namespace {

constexpr std::size_t kMaxRoles = 16;
constexpr std::size_t kMaxStates = 20000;
constexpr std::size_t kMaxAhead = 4;
constexpr std::uint32_t kIds = 18;
constexpr std::uint32_t kWarp = 32;

/// The step of each role, and the arrivals at each barrier.
struct State {
  std::vector<std::uint32_t> at;       // by role: its step
  std::vector<std::uint8_t> blocked;   // by role: waits at its step
  std::vector<std::uint8_t> taken;     // by role: how many of `choices` it has followed
  std::vector<std::uint32_t> choices;  // of all roles: statement and successor, in order
  std::vector<std::uint32_t> ahead;    // by role: barriers that some of its warps or lanes may
                                       // have passed before others of them arrived
  std::array<std::uint16_t, kIds> came{};
  std::array<std::uint32_t, kIds> expected{};

  [[nodiscard]] std::string key() const {
    std::string text;
    const auto add = [&](std::uint32_t value) {
      for (unsigned i = 0; i < 4; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
    };
    for (const std::uint32_t step : at) add(step);
    for (const std::uint8_t flag : blocked) text += static_cast<char>(flag);
    for (const std::uint8_t number : taken) text += static_cast<char>(number);
    for (const std::uint32_t ids : ahead) add(ids);
    for (const std::uint16_t roles : came) add(roles);
    for (const std::uint32_t count : expected) add(count);
    for (const std::uint32_t choice : choices) add(choice);
    return text;
  }
};

class Search {
 public:
  Search(std::vector<Role> roles, std::uint32_t threads, bool within_warp)
      : roles_(std::move(roles)), within_warp_(within_warp) {
    mates_.resize(roles_.size());
    for (std::uint32_t first = 0; first < threads; first += 32) {
      std::uint16_t here = 0;
      for (std::uint32_t t = first; t < std::min(first + 32, threads); ++t) {
        for (std::size_t r = 0; r < roles_.size(); ++r) {
          if (roles_[r].threads[t]) here = static_cast<std::uint16_t>(here | 1u << r);
        }
      }
      for (std::size_t r = 0; r < roles_.size(); ++r) {
        if ((here >> r & 1) != 0)
          mates_[r] = static_cast<std::uint16_t>((mates_[r] | here) & ~(1u << r));
      }
    }
  }

  bool run() {
    if (!possible_ || roles_.empty() || roles_.size() > kMaxRoles) return false;
    State start;
    for (const Role& role : roles_) start.at.push_back(role.first);
    start.blocked.assign(roles_.size(), 0);
    start.taken.assign(roles_.size(), 0);
    start.ahead.assign(roles_.size(), 0);
    add(std::move(start));
    while (!open_.empty() && possible_) {
      const State state = std::move(open_.back());
      open_.pop_back();
      expand(state);
    }
    return possible_;
  }

 private:
  void add(State state) {
    if (!seen_.insert(state.key()).second) return;
    if (seen_.size() > kMaxStates) possible_ = false;
    open_.push_back(std::move(state));
  }

  const Step& step(const State& state, std::size_t role) const {
    return roles_[role].steps[state.at[role]];
  }

  void expand(const State& state) {
    // A choice does not affect other roles, so its order does not matter.
    bool moved = false, all_end = true;
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      const Step& now = step(state, r);
      all_end = all_end && now.kind == Step::Kind::End;
      if (now.kind == Step::Kind::Choice) return choose(state, r);
    }
    if (may_mix(state)) return refuse();
    for (std::size_t r = 0; r < roles_.size() && possible_; ++r) {
      if (state.blocked[r] != 0 || step(state, r).kind != Step::Kind::Arrive) continue;
      moved = true;
      arrive(state, r);
    }
    if (!moved && !all_end) possible_ = false;
  }

  /// The warps of a role arrive one by one, its lanes too if the barrier is not aligned. If more
  /// may arrive than the barrier counts, threads of one role may complete it with some of another.
  bool may_mix(const State& state) const {
    for (std::uint32_t id = 0; id < kIds; ++id) {
      std::uint64_t number = 0, expected = state.expected[id];
      bool one_by_one = false;
      for (std::size_t r = 0; r < roles_.size(); ++r) {
        const Step& now = step(state, r);
        const bool comes = state.blocked[r] == 0 && now.kind == Step::Kind::Arrive && now.id == id;
        if (comes) expected = now.count;
        if (comes && may_arrive_separately(r, now)) one_by_one = true;
        if (comes || (state.came[id] >> r & 1) != 0) number += roles_[r].size;
      }
      if (one_by_one && number > expected) return true;
    }
    return false;
  }
  bool may_arrive_separately(std::size_t role, const Step& at) const {
    return roles_[role].size > kWarp || !at.aligned;
  }

  void choose(const State& state, std::size_t role) {
    const Step& now = step(state, role);
    if (!now.shared) {
      for (const std::uint32_t next : now.next) {
        State after = state;
        after.at[role] = next;
        add(std::move(after));
      }
      return;
    }
    const auto follow = [&](State after, std::uint32_t branch) {
      after.at[role] = now.next[branch];
      ++after.taken[role];
      // Choices that all roles have followed are dropped; roles at their end have followed all.
      std::uint8_t min = 0xff;
      for (std::size_t r = 0; r < roles_.size(); ++r) {
        if (step(after, r).kind != Step::Kind::End) min = std::min(min, after.taken[r]);
      }
      if (min != 0xff && min > 0) {
        after.choices.erase(after.choices.begin(), after.choices.begin() + min);
        for (std::uint8_t& number : after.taken)
          number = static_cast<std::uint8_t>(number - std::min(number, min));
      }
      add(std::move(after));
    };
    if (state.taken[role] < state.choices.size()) {
      const std::uint32_t choice = state.choices[state.taken[role]];
      const std::uint32_t branch = choice & 0xf;
      if (choice >> 4 != now.statement || branch >= now.next.size())
        possible_ = false;
      else
        follow(state, branch);
      return;
    }
    if (state.choices.size() >= kMaxAhead || now.next.size() > 16) {
      possible_ = false;
      return;
    }
    for (std::uint32_t branch = 0; branch < now.next.size(); ++branch) {
      State after = state;
      after.choices.push_back(now.statement << 4 | branch);
      follow(std::move(after), branch);
    }
  }

  void arrive(const State& before, std::size_t role) {
    const Step& now = step(before, role);
    State state = before;
    std::uint16_t& came = state.came[now.id];
    std::uint32_t& expected = state.expected[now.id];
    // After a repeated arrival, another count or too many arrivals the order would decide which
    // threads complete the barrier.
    if ((came >> role & 1) != 0) return refuse();
    if (expected != 0 && expected != now.count) return refuse();
    if (!now.waits && mates_[role] != 0) return refuse();
    if ((state.ahead[role] >> now.id & 1) != 0) return refuse();
    if (!now.waits && may_arrive_separately(role, now)) state.ahead[role] |= 1u << now.id;
    expected = now.count;
    came = static_cast<std::uint16_t>(came | 1u << role);
    if (now.waits)
      state.blocked[role] = 1;
    else
      state.at[role] = now.next[0];
    std::uint64_t number = 0;
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      if ((came >> r & 1) != 0) number += roles_[r].size;
    }
    if (number > expected) return refuse();
    if (number == expected && !complete(state, now.id)) return refuse();
    add(std::move(state));
  }
  void refuse() { possible_ = false; }

  bool complete(State& state, std::uint32_t id) {
    const std::uint16_t came = state.came[id];
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      if ((came >> r & 1) == 0) continue;
      // The rest of the warp must have arrived too, at the same statement if it is aligned. The
      // missing lanes of the last warp may then count for any of its roles.
      if (!within_warp_ && (mates_[r] & ~came) != 0) return false;
      if (state.blocked[r] == 0 || step(state, r).id != id) continue;
      const Step& now = step(state, r);
      for (std::size_t mate = 0; mate < roles_.size(); ++mate) {
        if ((mates_[r] >> mate & 1) == 0 || !now.aligned) continue;
        if (state.blocked[mate] == 0 || step(state, mate).statement != now.statement) return false;
      }
    }
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      if ((came >> r & 1) == 0 || state.blocked[r] == 0 || step(state, r).id != id) continue;
      released_.push_back(r);
    }
    for (const std::size_t r : released_) {
      state.blocked[r] = 0;
      state.ahead[r] = 0;
      state.at[r] = step(state, r).next[0];
    }
    released_.clear();
    state.came[id] = 0;
    state.expected[id] = 0;
    return true;
  }

  std::vector<Role> roles_;
  bool within_warp_;
  std::vector<std::uint16_t> mates_;  // by role: others in the same warps
  std::vector<State> open_;
  std::unordered_set<std::string> seen_;
  std::vector<std::size_t> released_;
  bool possible_ = true;
};

}  // namespace

bool every_order_ends(std::vector<Role> roles, std::uint32_t threads, bool within_warp) {
  return Search(std::move(roles), threads, within_warp).run();
}

bool all_orders_finish(const Subject& subject, const Walk& walk, const Launch& launch) {
  const std::uint32_t threads = launch.threads();
  const std::uint32_t rounded = (threads + 31) / 32 * 32;
  // A barrier for all threads completes in every order.
  const bool counted = std::ranges::any_of(walk.traces, [](const std::vector<Arrival>& trace) {
    return std::ranges::any_of(trace, [](const Arrival& arrival) { return arrival.count != 0; });
  });
  if (!counted) return true;
  std::vector<Role> roles(walk.traces.size());
  for (std::uint32_t t = 0; t < threads; ++t) roles[walk.trace_of[t]].threads.set(t);
  for (std::size_t r = 0; r < roles.size(); ++r) {
    Role& role = roles[r];
    role.size = static_cast<std::uint32_t>(role.threads.count());
    if (role.threads[threads - 1]) role.size += rounded - threads;
    for (const Arrival& arrival : walk.traces[r]) {
      const Use use = use_of(subject.function, subject.function.body[arrival.statement]);
      Step step;
      step.kind = Step::Kind::Arrive;
      step.waits = use.waits;
      step.aligned = use.aligned || use.kind == UseKind::None;
      step.statement = arrival.statement;
      step.id = arrival.id;
      step.count = arrival.count == 0 ? rounded : arrival.count;
      step.next.push_back(static_cast<std::uint32_t>(role.steps.size()) + 1);
      role.steps.push_back(std::move(step));
    }
    role.steps.emplace_back();
  }
  return every_order_ends(std::move(roles), threads, false);
}

}  // namespace ptxgen::inline v0::gates::barriers
