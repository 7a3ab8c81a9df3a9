// src/model/tokenizer/special_tokens.cpp - tokens that are taken whole where their text occurs
#include "model/tokenizer/special_tokens.hpp"

#include <algorithm>
#include <queue>
#include <span>

namespace ptxgen::inline v0::model {

namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

}  // namespace

// Where a token occurs. The order is that of a heap: the greatest is taken first.
struct SpecialTokens::Occurrence {
  std::size_t at = 0;
  const Entry* entry = nullptr;

  [[nodiscard]] std::size_t end() const noexcept { return at + entry->text.size(); }
  [[nodiscard]] bool operator<(const Occurrence& other) const noexcept {
    if (entry->text.size() != other.entry->text.size()) {
      return entry->text.size() < other.entry->text.size();
    }
    return entry->id != other.entry->id ? entry->id > other.entry->id : at > other.at;
  }
};

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) {
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool user_defined = type == TokenType::UserDefined;
    if (!user_defined && type != TokenType::Control && type != TokenType::Unknown) continue;
    if (vocabulary.text(id).empty()) continue;
    entries_.push_back({vocabulary.text(id), id, user_defined});
  }
  std::ranges::sort(entries_, {}, &Entry::text);
  for (const Entry& entry : entries_) ++first_[byte_at(entry.text, 0) + 1U];
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

// The longest token that the text begins with and that has fewer bytes than that; null if there is
// none. Narrows the tokens that share a beginning with the text, byte by byte.
const SpecialTokens::Entry* SpecialTokens::longest_at(std::string_view text,
                                                      std::size_t shorter_than,
                                                      bool control) const noexcept {
  const std::size_t lead = byte_at(text, 0);
  std::span<const Entry> left(entries_.data() + first_[lead], entries_.data() + first_[lead + 1]);
  const Entry* longest = nullptr;
  for (std::size_t length = 1; !left.empty() && length < shorter_than; ++length) {
    // The shortest is the first.
    const Entry& first = left.front();
    if (first.text.size() == length && (control || first.user_defined)) longest = &first;
    if (length == text.size()) break;
    const auto next = [&](const Entry& entry) {
      return entry.text.size() == length ? -1 : int{byte_at(entry.text, length)};
    };
    const int byte = byte_at(text, length);
    const auto begin = std::ranges::lower_bound(left, byte, {}, next);
    const auto end = std::ranges::upper_bound(left, byte, {}, next);
    left = {begin, end};
  }
  return longest;
}

// The tokens taken, by place.
std::vector<SpecialTokens::Occurrence> SpecialTokens::occurrences(std::string_view text,
                                                                  bool control) const {
  std::priority_queue<Occurrence> queue;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t lead = byte_at(text, at);
    if (first_[lead] == first_[lead + 1]) continue;
    const Entry* entry = longest_at(text.substr(at), text.size() - at + 1, control);
    if (entry != nullptr) queue.push({at, entry});
  }
  std::vector<Occurrence> taken;
  if (queue.empty()) return taken;
  std::vector<bool> is_taken(text.size());
  while (!queue.empty()) {
    const Occurrence next = queue.top();
    queue.pop();
    if (is_taken[next.at]) continue;
    // What was taken before is no shorter, so it covers an end of what it overlaps.
    if (is_taken[next.end() - 1]) {
      const Entry* shorter = longest_at(text.substr(next.at), next.entry->text.size(), control);
      if (shorter != nullptr) queue.push({next.at, shorter});
      continue;
    }
    std::fill(is_taken.begin() + static_cast<std::ptrdiff_t>(next.at),
              is_taken.begin() + static_cast<std::ptrdiff_t>(next.end()), true);
    taken.push_back(next);
  }
  std::ranges::sort(taken, {}, &Occurrence::at);
  return taken;
}

std::vector<Fragment> SpecialTokens::split(std::string_view text, bool control) const {
  std::vector<Fragment> fragments;
  std::size_t done = 0;
  for (const Occurrence& found : occurrences(text, control)) {
    if (found.at > done) fragments.push_back({text.substr(done, found.at - done), kNoToken});
    fragments.push_back({found.entry->text, found.entry->id});
    done = found.end();
  }
  if (done < text.size()) fragments.push_back({text.substr(done), kNoToken});
  return fragments;
}

}  // namespace ptxgen::inline v0::model
