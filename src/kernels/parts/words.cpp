// src/kernels/parts/words.cpp - 32-bit and 16-bit floats in memory
#include "kernels/parts/words.hpp"

#include <algorithm>
#include <array>

namespace ptxgen::inline v0 {

namespace {

// `kCount` registers of T with one load.
template <class T, std::size_t... kIndex>
std::vector<Value<T>> as_vector(const std::array<Value<T>, sizeof...(kIndex)>& values,
                                std::index_sequence<kIndex...>) {
  return {values[kIndex]...};
}
template <class T, class S>
std::vector<Value<T>> load_words(KernelBuilder& k, const Ptr<b8, S>& at, std::uint32_t count,
                                 const Load& how) {
  const Ptr<T, S> from = at.template cast<T>();
  if (count == 4) return as_vector<T>(k.ld<4>(from, how), std::make_index_sequence<4>());
  if (count == 2) return as_vector<T>(k.ld<2>(from, how), std::make_index_sequence<2>());
  return {k.ld(from, how)};
}

template <class S>
Floats load(KernelBuilder& k, const Ptr<b8, S>& at, ElementType type, std::uint32_t count,
            const Load& how) {
  Floats floats;
  floats.type = type;
  if (type == ElementType::f32) {
    floats.full = load_words<f32>(k, at, count, how);
  } else if (count > 1) {
    floats.pairs = load_words<u32>(k, at, count / 2, how);
  } else {
    const Value<u16> bits = k.ld(at.template cast<u16>(), how);
    floats.pairs.push_back(k.cvt<u32>(bits));
  }
  return floats;
}

template <class T, class Zero>
std::vector<Value<T>> guarded_words(KernelBuilder& k, const Ptr<b8>& at, std::uint32_t count,
                                    const Pred& p, const Load& how, Zero zero) {
  std::vector<Value<T>> words;
  std::vector<Operand> into;
  for (std::uint32_t i = 0; i < count; ++i) {
    words.push_back(k.undefined<T>());
    k.emit(ptx::Op::mov, {ptx::as_modifier(T::kType)}, {words.back(), zero});
  }
  for (const Value<T>& word : words) into.emplace_back(word);
  std::vector<ptx::Modifier> modifiers{ptx::Modifier::global};
  if (how.cache != Cache::none) modifiers.push_back(static_cast<ptx::Modifier>(how.cache));
  if (how.read_only) modifiers.push_back(ptx::Modifier::nc);
  if (count > 1) modifiers.push_back(count == 2 ? ptx::Modifier::v2 : ptx::Modifier::v4);
  modifiers.push_back(ptx::as_modifier(T::kType));
  const Ptr<T> from = at.cast<T>();
  k.guarded(p, [&] {
    const Vec vector{std::span<const Operand>(into)};
    const Operand operands[] = {count > 1 ? Operand(vector) : into[0], Operand(from)};
    k.emit(how.read_only ? ptx::Op::ld_nc : ptx::Op::ld, modifiers, operands);
  });
  return words;
}

template <class T>
void store_words(KernelBuilder& k, const Ptr<b8>& at, const std::vector<Value<T>>& words) {
  const Ptr<T> to = at.cast<T>();
  if (words.size() == 4) {
    k.st(to, std::array{words[0], words[1], words[2], words[3]});
  } else if (words.size() == 2) {
    k.st(to, std::array{words[0], words[1]});
  } else {
    k.st(to, words[0]);
  }
}

// Two of them in a word.
Value<u32> pack(KernelBuilder& k, ElementType type, const Value<f32>& low, const Value<f32>& high) {
  const bool converts_pairs = k.target().sm >= 80;
  if (type == ElementType::f16) {
    if (converts_pairs) return k.bitcast<u32>(k.cvt2<f16x2>(high, low));
    const Value<f16> lower = k.cvt<f16>(low, Rounding::rn);
    const Value<f16> upper = k.cvt<f16>(high, Rounding::rn);
    return k.bitcast<u32>(k.pack<f16x2>(lower, upper));
  }
  if (converts_pairs) return k.bitcast<u32>(k.cvt2<bf16x2>(high, low));
  const Value<u32> upper = round_to_bf16(k, high);
  const Value<u32> lower = round_to_bf16(k, low);
  return k.prmt(lower, upper, 0x7632u);
}

// One of them in the lower half of a word.
Value<u16> narrow(KernelBuilder& k, ElementType type, const Value<f32>& value) {
  if (type == ElementType::f16) return k.bitcast<u16>(k.cvt<f16>(value, Rounding::rn));
  if (k.target().sm >= 80) return k.bitcast<u16>(k.cvt<bf16>(value, Rounding::rn));
  const Value<u32> upper = round_to_bf16(k, value) >> 16u;
  return k.cvt<u16>(upper);
}

}  // namespace

Value<u32> round_to_bf16(KernelBuilder& k, const Value<f32>& value) {
  const Value<u32> bits = k.bitcast<u32>(value);
  const Value<u32> odd = (bits >> 16u) & 1u;
  const Value<u32> rounded = bits + odd + 0x7fffu;
  const Pred number = k.setp(Comparison::num, value, value);
  return k.selp(rounded, 0x7fff0000u, number);
}

Floats load_floats(KernelBuilder& k, const Ptr<b8>& at, ElementType type, std::uint32_t count,
                   const Load& how) {
  return load(k, at, type, count, how);
}

Floats load_floats(KernelBuilder& k, const Ptr<b8, Shared>& at, ElementType type,
                   std::uint32_t count) {
  return load(k, at, type, count, Load{});
}

std::vector<Value<u32>> load_words_if(KernelBuilder& k, const Ptr<b8>& at, std::uint32_t count,
                                      const Pred& p, const Load& how) {
  return guarded_words<u32>(k, at, count, p, how, 0);
}

Floats load_floats_if(KernelBuilder& k, const Ptr<b8>& at, ElementType type, std::uint32_t count,
                      const Pred& p, const Load& how) {
  Floats floats;
  floats.type = type;
  if (type == ElementType::f32) {
    floats.full = guarded_words<f32>(k, at, count, p, how, 0.0f);
  } else if (count > 1) {
    floats.pairs = guarded_words<u32>(k, at, count / 2, p, how, 0);
  } else {
    const std::vector<Value<u16>> bits = guarded_words<u16>(k, at, 1, p, how, 0);
    floats.pairs.push_back(k.cvt<u32>(bits[0]));
  }
  return floats;
}

Floats load_run(KernelBuilder& k, const Ptr<b8>& at, ElementType type, std::uint32_t count,
                std::uint32_t alignment, const Load& how) {
  Floats run;
  run.type = type;
  const std::uint32_t element = bytes(type);
  for (std::uint32_t i = 0; i < count;) {
    std::uint32_t take = std::min<std::uint32_t>(alignment, 16) / element;
    while (take > 1 && (i % take != 0 || i + take > count)) take /= 2;
    const Floats part = load_floats(k, at + i * element, type, take, how);
    // A single 16-bit float has its own word.
    for (const Value<f32>& value : part.full) run.full.push_back(value);
    if (type != ElementType::f32 && take == 1 && i % 2 == 1) {
      const Value<u32> high = part.pairs[0] << 16u;
      const Value<u32> low = run.pairs.back();
      run.pairs.pop_back();
      run.pairs.push_back(low | high);
    } else {
      for (const Value<u32>& pair : part.pairs) run.pairs.push_back(pair);
    }
    i += take;
  }
  return run;
}

std::vector<Value<f32>> expand(KernelBuilder& k, const Floats& floats, std::uint32_t count) {
  if (floats.type == ElementType::f32) return floats.full;
  std::vector<Value<f32>> values;
  for (std::uint32_t i = 0; i < count; i += 2) {
    const Value<u32>& word = floats.pairs[i / 2];
    if (floats.type == ElementType::bf16) {
      values.push_back(k.bitcast<f32>(word << 16u));
      if (i + 1 < count) values.push_back(k.bitcast<f32>(word & 0xffff0000u));
    } else {
      const std::array<Value<f16>, 2> halves = k.unpack<f16>(word);
      values.push_back(k.cvt<f32>(halves[0]));
      if (i + 1 < count) values.push_back(k.cvt<f32>(halves[1]));
    }
  }
  return values;
}

Value<f32> rounded_to(KernelBuilder& k, ElementType type, const Value<f32>& value) {
  if (type == ElementType::f32) return value;
  const Value<u16> bits = narrow(k, type, value);
  if (type == ElementType::f16) return k.cvt<f32>(k.bitcast<f16>(bits));
  return k.bitcast<f32>(k.cvt<u32>(bits) << 16u);
}

std::vector<Value<u32>> pack_floats(KernelBuilder& k, ElementType type,
                                    const std::vector<Value<f32>>& values) {
  std::vector<Value<u32>> words;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    words.push_back(pack(k, type, values[i], values[i + 1]));
  }
  return words;
}

void store_floats(KernelBuilder& k, const Ptr<b8>& at, ElementType type,
                  const std::vector<Value<f32>>& values) {
  if (type == ElementType::f32) {
    store_words<f32>(k, at, values);
  } else if (values.size() == 1) {
    k.st(at.cast<u16>(), narrow(k, type, values[0]));
  } else {
    store_words<u32>(k, at, pack_floats(k, type, values));
  }
}

void store_run(KernelBuilder& k, const Ptr<b8>& at, ElementType type,
               const std::vector<Value<f32>>& values, std::uint32_t count) {
  for (std::uint32_t i = 0; i < values.size(); i += count) {
    const auto first = values.begin() + i;
    store_floats(k, at + i * bytes(type), type, {first, first + count});
  }
}

}  // namespace ptxgen::inline v0
