// tests/litmus/memory_model.cpp - enumerates executions and checks the axioms
#include "memory_model.hpp"

#include <stdexcept>
#include <utility>

namespace ptxgen::litmus {

bool Place::includes(Scope scope, const Place& other) const noexcept {
  switch (scope) {
    case Scope::None:
      return false;
    case Scope::Cta:
      return block == other.block;
    case Scope::Cluster:
      return cluster == other.cluster;
    case Scope::Gpu:
      return device == other.device;
    case Scope::Sys:
      break;
  }
  return true;
}

Value Value::of_read(std::uint32_t event) {
  Value value;
  value.reads = bit(event);
  value.compute = [event](std::span<const std::uint64_t> read) { return read[event]; };
  return value;
}

namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

constexpr bool releases(Order order) {
  return order == Order::Release || order == Order::AcqRel || order == Order::Sc;
}
constexpr bool acquires(Order order) {
  return order == Order::Acquire || order == Order::AcqRel || order == Order::Sc;
}

/// The executions of one path of each thread.
class Candidates {
 public:
  Candidates(const Program& program, const std::vector<const Path*>& paths, Axiom without,
             Allowed& found)
      : program_(program), paths_(paths), without_(without), found_(found) {
    gather();
    relate();
  }

  void try_all() { choose_source(0); }

 private:
  // An initial write of each location, then the events of the threads.
  void gather() {
    for (std::uint32_t i = 0; i < program_.initial.size(); ++i) {
      Event event;
      event.writes = true;
      event.location = i;
      event.value = program_.initial[i];
      events_.push_back(event);
    }
    initial_ = count();
    for (const Path* path : paths_) {
      first_.push_back(count());
      events_.insert(events_.end(), path->events.begin(), path->events.end());
    }
    first_.push_back(count());
    if (count() > kMaxEvents) throw std::length_error("more than 64 events");
    thread_.assign(count(), 0);
    for (std::uint32_t t = 0; t + 1 < first_.size(); ++t) {
      for (std::uint32_t e = first_[t]; e < first_[t + 1]; ++e) thread_[e] = t;
    }
    for (std::uint32_t e = 0; e < count(); ++e) {
      if (events_[e].reads) reads_.push_back(e);
      if (events_[e].writes) writes_ |= bit(e);
      if (events_[e].atomic && events_[e].writes) atomics_ |= bit(e);
    }
  }

  // What does not depend on the execution: program order, overlap, moral strength, barriers.
  void relate() {
    for (std::uint32_t t = 0; t < paths_.size(); ++t) {
      const std::optional<Relation>& order = paths_[t]->order;
      for (std::uint32_t a = first_[t]; a < first_[t + 1]; ++a) {
        for (std::uint32_t b = first_[t]; b < first_[t + 1]; ++b) {
          if (order ? order->has(a - first_[t], b - first_[t]) : a < b) program_order_.add(a, b);
        }
      }
    }
    for (std::uint32_t a = 0; a < count(); ++a) {
      for (std::uint32_t b = 0; b < count(); ++b) {
        if (a == b) continue;
        if (overlap(a, b)) overlap_.add(a, b);
        if (morally_strong(a, b)) strong_.add(a, b);
        // A launch begins after the writes that initialise memory.
        if (a < initial_ && b >= initial_) static_order_.add(a, b);
        if (events_[a].arrives && events_[b].waits && events_[a].barrier == events_[b].barrier) {
          static_order_.add(a, b);
        }
      }
    }
    static_order_ = static_order_ | program_order_;
    for (std::uint32_t a = 0; a < count(); ++a) {
      for (std::uint32_t b = a + 1; b < count(); ++b) {
        if (is_sc(a) && is_sc(b) && strong_.has(a, b)) fence_pairs_.push_back({a, b});
      }
    }
    find_patterns();
  }

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(events_.size()); }
  [[nodiscard]] bool is_memory(std::uint32_t e) const {
    return events_[e].reads || events_[e].writes;
  }
  [[nodiscard]] bool is_strong(std::uint32_t e) const {
    return (is_memory(e) || events_[e].fence) && events_[e].order != Order::Weak;
  }
  [[nodiscard]] bool is_sc(std::uint32_t e) const {
    return events_[e].fence && events_[e].order == Order::Sc;
  }
  [[nodiscard]] bool overlap(std::uint32_t a, std::uint32_t b) const {
    return is_memory(a) && is_memory(b) && events_[a].location == events_[b].location;
  }
  // 8.7
  [[nodiscard]] bool morally_strong(std::uint32_t a, std::uint32_t b) const {
    if (a < initial_ || b < initial_) return false;
    if (is_memory(a) && is_memory(b) && !overlap(a, b)) return false;
    if (program_order_.has(a, b) || program_order_.has(b, a)) return true;
    if (!is_strong(a) || !is_strong(b)) return false;
    const Place& place_a = program_.threads[thread_[a]].place;
    const Place& place_b = program_.threads[thread_[b]].place;
    return place_a.includes(events_[a].scope, place_b) &&
           place_b.includes(events_[b].scope, place_a);
  }

  // 8.8: pairs of the pattern's first instruction and its write, of its read and last instruction.
  void find_patterns() {
    for (std::uint32_t a = initial_; a < count(); ++a) {
      const Event& event = events_[a];
      const bool acquiring_read = event.reads && !event.reduction && acquires(event.order);
      if (event.writes && releases(event.order)) release_patterns_.push_back({a, a});
      if (acquiring_read) acquire_patterns_.push_back({a, a});
      for_each(program_order_.after(a), [&](std::uint32_t b) {
        const bool begins = event.fence || (event.writes && overlap(a, b));
        if (begins && releases(event.order) && events_[b].writes && is_strong(b)) {
          release_patterns_.push_back({a, b});
        }
        const Event& last = events_[b];
        const bool ends = last.fence || (last.reads && !last.reduction && overlap(a, b));
        if (event.reads && !event.reduction && is_strong(a) && ends && acquires(last.order)) {
          acquire_patterns_.push_back({a, b});
        }
      });
    }
  }

  void choose_source(std::size_t number) {
    if (number == reads_.size()) return with_sources();
    const std::uint32_t read = reads_[number];
    for_each(overlap_.after(read) & writes_, [&](std::uint32_t write) {
      source_[read] = write;
      choose_source(number + 1);
    });
  }

  void with_sources() {
    from_ = {};
    for (const std::uint32_t read : reads_) from_.add(source_[read], read);
    if (!evaluate()) return;
    // 8.9.2
    observed_ = (from_ & strong_).closure(atomics_);
    Relation synchronizes;
    for (const auto& [first, write] : release_patterns_) {
      for (const auto& [read, last] : acquire_patterns_) {
        if (strong_.has(first, last) && observed_.has(write, read)) synchronizes.add(first, last);
      }
    }
    choose_fences(0, static_order_ | synchronizes, {});
  }

  // 8.10.4, then the values. False if there is a cycle or another path is taken.
  [[nodiscard]] bool evaluate() {
    Relation needs = from_;
    for (std::uint32_t t = 0; t < paths_.size(); ++t) {
      for (std::uint32_t e = first_[t]; e < first_[t + 1]; ++e) {
        const Events own = bit(e - first_[t]);
        for_each((events_[e].depends | events_[e].value.reads) & ~own,
                 [&](std::uint32_t read) { needs.add(first_[t] + read, e); });
      }
    }
    if (!needs.acyclic()) return false;
    read_.assign(count(), 0);
    Events known = 0;
    for (const std::uint32_t read : reads_) value_of_read(read, known);
    for (std::uint32_t t = 0; t < paths_.size(); ++t) {
      for (const Path::Condition& condition : paths_[t]->conditions) {
        if ((condition.value.of(read_of(t)) != 0) != condition.holds) return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::span<const std::uint64_t> read_of(std::uint32_t thread) const {
    return std::span(read_).subspan(first_[thread], first_[thread + 1] - first_[thread]);
  }
  void value_of_read(std::uint32_t read, Events& known) {
    if ((known & bit(read)) != 0) return;
    known |= bit(read);
    read_[read] = written(source_[read], known);
  }
  std::uint64_t written(std::uint32_t write, Events& known) {
    const Event& event = events_[write];
    if (write < initial_) return event.value.constant;
    for_each(event.value.reads,
             [&](std::uint32_t read) { value_of_read(first_[thread_[write]] + read, known); });
    return event.value.of(read_of(thread_[write]));
  }

  // 8.9.3: every pair of morally strong fences is ordered in one of the two ways.
  void choose_fences(std::size_t number, const Relation& order, const Relation& fences) {
    if (number == fence_pairs_.size()) return with_fences(order.closure(), fences);
    const auto [a, b] = fence_pairs_[number];
    for (const auto& [first, second] : {Pair{a, b}, Pair{b, a}}) {
      Relation more = fences;
      more.add(first, second);
      Relation with = order;
      with.add(first, second);
      if (more.acyclic()) choose_fences(number + 1, with, more);
    }
  }

  void with_fences(const Relation& base, const Relation& fences) {
    // 8.10.2
    for (const auto& [a, b] : fence_pairs_) {
      if (fences.has(a, b) ? base.has(b, a) : base.has(a, b)) return;
    }
    // 8.9.5
    base_ = base & overlap_;
    causality_ = base_;
    for (std::uint32_t a = 0; a < count(); ++a) {
      for_each(observed_.after(a), [&](std::uint32_t middle) {
        for_each(base.after(middle), [&](std::uint32_t b) {
          if (overlap(a, b)) causality_.add(a, b);
        });
      });
    }
    Relation forced;
    write_pairs_.clear();
    for_each(writes_, [&](std::uint32_t a) {
      for_each(writes_, [&](std::uint32_t b) {
        const bool counts = without_ != Axiom::Coherence || a < initial_;
        if (causality_.has(a, b) && counts) forced.add(a, b);
        if (a < b && strong_.has(a, b)) write_pairs_.push_back({a, b});
      });
    });
    choose_coherence(0, forced);
  }

  // 8.9.6: writes that are morally strong or ordered by causality, no others.
  void choose_coherence(std::size_t number, const Relation& order) {
    if (!order.acyclic()) return;
    if (number == write_pairs_.size()) return with_coherence(order.closure());
    const auto [a, b] = write_pairs_[number];
    for (const auto& [first, second] : {Pair{a, b}, Pair{b, a}}) {
      Relation more = order;
      more.add(first, second);
      choose_coherence(number + 1, more);
    }
  }

  void with_coherence(const Relation& coherence) {
    Relation before;  // a read, and a write that overwrites what it has read
    for (const std::uint32_t read : reads_) {
      before.add_all(read, coherence.after(source_[read]) & ~bit(read));
    }
    if (sc_per_location(coherence, before) && causal(before)) record(coherence);
  }
  // 8.10.3 and 8.10.5
  [[nodiscard]] bool sc_per_location(const Relation& coherence, const Relation& before) const {
    if (without_ == Axiom::ScPerLocation) return true;
    return ((program_order_ & overlap_) | ((from_ | coherence | before) & strong_)).acyclic();
  }
  // 8.10.6
  [[nodiscard]] bool causal(const Relation& before) const {
    if (without_ == Axiom::Causality) return true;
    for (const std::uint32_t read : reads_) {
      // Not causality_: the observation order of an atomic operation begins with its write.
      if (base_.has(read, source_[read])) return false;
      bool holds = true;
      for_each(before.after(read),
               [&](std::uint32_t write) { holds &= !causality_.has(write, read); });
      if (!holds) return false;
    }
    return true;
  }

  // The last write of a location in coherence order; each of them where the order has several.
  void record(const Relation& coherence) {
    std::vector<std::vector<std::uint64_t>> last(program_.initial.size());
    Events known = ~Events{0};
    for_each(writes_, [&](std::uint32_t write) {
      if (coherence.after(write) == 0) {
        last[events_[write].location].push_back(written(write, known));
      }
    });
    const bool race = has_race();
    Outcome outcome(last.size());
    record_all(last, 0, outcome, race);
  }
  void record_all(const std::vector<std::vector<std::uint64_t>>& last, std::size_t location,
                  Outcome& outcome, bool race) {
    if (location == last.size()) {
      Executions& executions = found_[outcome];
      (race ? executions.racy : executions.race_free) = true;
      return;
    }
    for (const std::uint64_t value : last[location]) {
      outcome[location] = value;
      record_all(last, location + 1, outcome, race);
    }
  }
  // 8.7.1
  [[nodiscard]] bool has_race() const {
    for (std::uint32_t a = initial_; a < count(); ++a) {
      for (std::uint32_t b = a + 1; b < count(); ++b) {
        if (overlap(a, b) && (events_[a].writes || events_[b].writes) && !strong_.has(a, b) &&
            !causality_.has(a, b) && !causality_.has(b, a)) {
          return true;
        }
      }
    }
    return false;
  }

  const Program& program_;
  const std::vector<const Path*>& paths_;
  Axiom without_;
  Allowed& found_;
  std::vector<Event> events_;
  std::uint32_t initial_ = 0;         ///< events before this one are the initial writes
  std::vector<std::uint32_t> first_;  ///< event of each thread, and the end
  std::vector<std::uint32_t> thread_;
  std::vector<std::uint32_t> reads_;
  Events writes_ = 0;
  Events atomics_ = 0;  ///< read-modify-writes
  Relation program_order_;
  Relation overlap_;
  Relation strong_;        ///< morally strong
  Relation static_order_;  ///< base causality that every execution has
  std::vector<Pair> fence_pairs_;
  std::vector<Pair> release_patterns_;
  std::vector<Pair> acquire_patterns_;
  // The execution.
  std::array<std::uint32_t, kMaxEvents> source_{};
  std::vector<std::uint64_t> read_;
  Relation from_;
  Relation observed_;
  Relation base_;  ///< base causality order of operations on one location
  Relation causality_;
  std::vector<Pair> write_pairs_;
};

}  // namespace

Allowed allowed(const Program& program, Axiom without) {
  Allowed found;
  std::vector<const Path*> paths(program.threads.size());
  const std::function<void(std::size_t)> choose = [&](std::size_t thread) {
    if (thread == paths.size()) return Candidates(program, paths, without, found).try_all();
    for (const Path& path : program.threads[thread].paths) {
      paths[thread] = &path;
      choose(thread + 1);
    }
  };
  choose(0);
  return found;
}

}  // namespace ptxgen::litmus
