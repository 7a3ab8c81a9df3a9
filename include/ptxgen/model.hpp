// ptxgen/model.hpp - files of models
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/model/gguf.hpp"
#include "ptxgen/model/gguf_types.hpp"
#include "ptxgen/model/tokenizer.hpp"
