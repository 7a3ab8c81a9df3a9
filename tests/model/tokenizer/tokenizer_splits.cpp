// tests/model/tokenizer/tokenizer_splits.cpp - cuts texts as a pre-tokenizer does
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "model/tokenizer/pre_tokenizer.hpp"
#include "ptxgen/support/error.hpp"

// usage: tokenizer_splits NAME: texts on standard input with NULs between them; each piece is
// followed by U+0001, each text by NUL. Status 77 in a build without pre-tokenizers.
int main(int argc, char** argv) {
  using namespace ptxgen;
  if (argc != 2) return 2;
  if (model::PreTokenizer::names().empty()) {
    std::puts("SKIP: built without ICU");
    return 77;
  }
  try {
    const model::PreTokenizer pre_tokenizer{std::string_view(argv[1])};
    const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
    std::string output;
    for (std::size_t begin = 0, end = 0; end != input.npos; begin = end + 1) {
      end = input.find('\0', begin);
      const std::string_view rest(input.data() + begin, input.size() - begin);
      for (const std::string_view piece : pre_tokenizer.split(rest.substr(0, end - begin))) {
        output += piece;
        output += '\x01';
      }
      output += '\0';
    }
    std::cout << output;
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
