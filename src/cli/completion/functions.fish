# The words of the command that was typed so far, then a comma and the number of its arguments.
function __parley_called
    set -l words (commandline -opc)
    set -e words[1]
    set -l called
    set -l position 0
    set -l is_value no
    set -l is_over no
    for word in $words
        if test $is_value = yes
            set is_value no
        else if test $is_over = no; and string match -qr -- '^-.' $word
            test "$word" = --; and set is_over yes
            contains -- $word $__parley_valued; and set is_value yes
        else if test $position = 0; and contains -- (string join ' ' -- $called $word) $__parley_commands
            set -a called $word
        else
            set position (math $position + 1)
        end
    end
    string join , -- "$called" $position
end

function __parley_in
    contains -- (string replace -r ',\d+$' '' -- (__parley_called)) $argv
end

function __parley_at
    contains -- (__parley_called) $argv
end

function __parley_profiles
    command parley config profiles 2>/dev/null </dev/null
end

# The sessions that were used last on this machine.
function __parley_sessions
    set -l folder $HOME/.cache
    test (uname) = Darwin; and set folder $HOME/Library/Caches
    set -q XDG_CACHE_HOME[1]; and test -n "$XDG_CACHE_HOME"; and set folder $XDG_CACHE_HOME
    test -f $folder/parley/sessions
    and string match -r '^[A-Za-z0-9_-]{1,128}$' <$folder/parley/sessions
end

# @ and a file's name.
function __parley_texts
    set -l begun (string match -rg '^(?:--[^=]*=)?@(.*)$' -- (commandline -ct)); or return
    for file in $begun*
        test -d $file; and set file $file/
        printf '@%s\n' $file
    end
end

