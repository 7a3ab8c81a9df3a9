// src/emulator/machine/observe.hpp - the steps of a launch with an observer
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/state/machine.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/emulator/observer.hpp"

namespace ptxgen::inline v0::emulator {

/// What observers need of a function, beyond what runs it. Made when it is first observed.
class ObservedCode {
 public:
  explicit ObservedCode(const Code& code);

  /// Lanes of the running split whose guard at the statement is true.
  [[nodiscard]] std::uint32_t executing(const Context& context,
                                        std::uint32_t statement) const noexcept;
  /// See Moment::register_lanes.
  [[nodiscard]] RegisterLanes lanes(const ptx::Module& module, const Context& context,
                                    std::uint32_t statement, std::string_view name);

 private:
  struct Guard {
    std::uint32_t offset = kNoIndex;  ///< frame offset of the predicate
    std::uint32_t flip = 0;
  };
  /// A register of a name: its number in the index, and which element of a vector register.
  struct Named {
    std::uint32_t number = 0;
    std::uint8_t element = 0;
  };
  [[nodiscard]] std::vector<Named> find(const ptx::Module& module, std::string_view name) const;
  [[nodiscard]] bool holds_value(std::uint32_t number, std::uint32_t statement) const;
  [[nodiscard]] RegisterLanes read(const Context& context, const Named& named) const;
  [[nodiscard]] std::uint32_t defined_lanes(const Context& context, std::uint32_t number,
                                            unsigned first_byte, unsigned bytes) const;

  const Code& code_;
  analysis::RegisterIndex index_;
  std::vector<analysis::LiveRange> ranges_;
  std::vector<Guard> guards_;  ///< by statement
  std::map<std::string, std::vector<Named>, std::less<>> names_;
};

/// A launch with an observer.
class Observation {
 public:
  Observation(const Image& image, Observer& observer) : image_(image), observer_(observer) {
    codes_.resize(image.codes.size());
  }

  /// Calls the observer; true if the instruction is to be executed.
  [[nodiscard]] bool before(const Context& context, std::uint32_t statement);
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const Image& image() const noexcept { return image_; }
  [[nodiscard]] ObservedCode& code_of(const Code& code) const;

 private:
  const Image& image_;
  Observer& observer_;
  mutable std::vector<std::unique_ptr<ObservedCode>> codes_;  ///< by Code::index
  std::uint64_t number_ = 0;
  bool stopped_ = false;
};

/// Grid::run_steps of a launch with an observer. When the observer stops it, the block is killed.
[[nodiscard]] const Step* run_observed_steps(Context& context, const Step* step);

}  // namespace ptxgen::inline v0::emulator
