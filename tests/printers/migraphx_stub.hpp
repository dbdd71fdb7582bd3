// What --cpp writes calls: declarations only, in our own words, to check the syntax of programs.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

namespace migraphx {

struct shape {
    enum type_t {
        bool_type, half_type, float_type, double_type, uint8_type, int8_type, uint16_type,
        int16_type, int32_type, int64_type, uint32_type, uint64_type, fp8e4m3fnuz_type,
        fp8e4m3fn_type, fp8e5m2_type, bf16_type, fp8e5m2fnuz_type, tuple_type, fp4x2_type
    };
    struct dynamic_dimension {
        dynamic_dimension(std::size_t min, std::size_t max);
        dynamic_dimension(std::size_t min, std::size_t max, std::set<std::size_t> optimals);
    };
    explicit shape(type_t t);
    shape(type_t t, std::vector<std::size_t> lens);
    shape(type_t t, std::vector<std::size_t> lens, std::vector<std::size_t> strides);
    shape(type_t t, std::initializer_list<std::size_t> lens);
    shape(type_t t,
          std::initializer_list<std::size_t> lens,
          std::initializer_list<std::size_t> strides);
    shape(type_t t, std::vector<dynamic_dimension> dims);
};

struct operation {};
struct literal {};
struct instruction {};
using instruction_ref = instruction*;
struct module;
using module_ref = module*;

struct module {
    instruction_ref add_parameter(std::string name, shape s);
    instruction_ref add_literal(literal l);
    instruction_ref add_instruction(const operation& op);
    instruction_ref add_instruction(const operation& op, std::vector<instruction_ref> args);
    instruction_ref add_instruction(const operation& op,
                                    std::vector<instruction_ref> args,
                                    std::vector<module_ref> modules);
    instruction_ref add_return(std::vector<instruction_ref> args);
};

struct program {
    module_ref get_main_module();
    module_ref create_module(const std::string& name);
};

operation make_op(const std::string& name);
operation make_json_op(const std::string& name, const std::string& attributes);
literal generate_literal(shape s, unsigned long seed = 0);
literal abs(literal l);

} // namespace migraphx
