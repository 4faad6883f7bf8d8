/** How the rules of a policy are read. */
export const policyText = `A policy says which tool uses 'parley events run' and 'parley events confirm' answer, and how. It is a JSON file that is named by --policy, and never looked for:

  {"rules": [
    {"tool": "read_*", "decision": "allow"},
    {"tool": "bash", "input": {"command": "git status"}, "decision": "allow"},
    {"tool": "bash", "input": {"command": "*rm *"}, "decision": "deny",
      "reason": "no deleting"}
  ], "default": {"decision": "deny", "reason": "not in CI"}}

Of all rules that match the strictest counts: deny, then ask, then allow. The default applies where none matches; without it: ask. What is to be asked stays open where there is no terminal, and the run ends with exit 12. The reason of a deny is what the agent is given.

The tool and each text of input have to match as a whole; * is any text. Input names fields as --set does (a.b, a[0], a["x.y"]). A server is the name of an MCP server.

An allow matches as little as it can. With input it has to name every field of the input ("**" as the text frees a field). Its * is no text with a line end, a control character, one of ; | & $ ( ) < > \` \\ ! { } % ^, or a .. as in a path; ** is any text. Without server it matches no MCP tool. An input that has a key twice, or is nested over 100 deep, is never allowed.

A deny or an ask matches as much as it can: * is any text, and a field that is no text matches any pattern.

A rule does not know what a program does with its arguments: "git *" runs anything through -c, "find *" through -exec, and a script may have changed since. So allow whole commands. Whoever may write the file decides what the agent may do: keep it away from the agent.

Examples in a rule are checked when the file is read:

  {"tool": "bash", "input": {"command": "ls *"}, "decision": "allow",
    "examples": {"match": [{"name": "bash", "input": {"command": "ls -l"}}],
      "miss": [{"name": "bash", "input": {"command": "ls a; rm a"}}]}}

  parley events run 'Run the tests' -s sesn_1 --policy rules.json
`
