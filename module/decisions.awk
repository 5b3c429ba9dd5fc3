# Makes a C file with the table of the plugins that decide in plain C (module/core/plugin/decision.h):
# of each folder plugins/<name> with a file sluice_<name>.c, "-" being "_".
#
#     find plugins -name 'sluice_*.c' | sort | awk -f module/decisions.awk >decisions.c

{
    n = split($0, parts, "/")
    name = "sluice_" parts[n - 1]
    gsub(/-/, "_", name)
    if (parts[n] == name ".c") {
        names[count++] = name
    }
}

END {
    print "\n/* Made by module/decisions.awk. */\n\n\n#include \"decision.h\"\n\n"
    for (i = 0; i < count; i++) {
        print "extern const sluice_decision_plugin_t  " names[i] ";"
    }
    print "\n\nconst sluice_decision_plugin_t *const  sluice_decisions[] = {"
    for (i = 0; i < count; i++) {
        print "    &" names[i] ","
    }
    print "    NULL\n};"
}
