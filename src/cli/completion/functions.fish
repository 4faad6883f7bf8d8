# Completes the words of parley. Requires fish 3.4 or later.

# The table of words. A row is a key, a tab, a word, a tab, and a description.
set -g __parley_rows \
ROWS

# Prints the words of the rows with the key $1, each with a tab and a description. A word in <> is
# another key, whose words are printed, or a source of words, such as <profiles>. <files> is printed
# unchanged, because fish itself completes file names.
function __parley_find
    for row in (string match -- $argv[1]\t'*' $__parley_rows)
        set row (string split -m 1 -f 2 \t -- $row)
        set -l key (string match -rg '^<(.*)>$' -- $row)
        switch "$key"
            case ''
                printf '%s\n' $row
            case profiles
                command parley config profiles 2>/dev/null </dev/null
            case texts
                __parley_texts
            case files
                echo '<files>'
            case '*'
                __parley_find $key
        end
    end
end

function __parley_has
    contains -- $argv[1] (string replace -r '\t.*' '' -- $argv[2..])
end

# Sets __parley_found to the words that TAB offers. Fails if fish should complete file names.
function __parley_words
    set -l called ''
    set -l position 0
    set -l flag ''
    set -l is_over no
    for word in (commandline -opc)[2..]
        if test -n "$flag"
            set flag ''
        else if test $is_over = no; and string match -qr -- '^-.' $word
            test "$word" = --; and set is_over yes
            __parley_has "$word=" (__parley_find "$called,-"); and set flag $word
        else if test $position = 0; and __parley_has "$word" (__parley_find "$called,")
            set called (string trim -- "$called $word")
        else
            set position (math $position + 1)
        end
    end
    set -l stem ''
    set -l begun (commandline -ct)
    if test $is_over = no -a -z "$flag"; and string match -qr -- '^--.*=' $begun
        set flag (string replace -r '=.*' '' -- $begun)
        set stem $flag=
    end
    if test -n "$flag"
        set -g __parley_found (__parley_find "$called,$flag")
        # A row for a value of a shared flag has no command in its key.
        set -q __parley_found[1]; or set __parley_found (__parley_find ",$flag")
    else if test $is_over = no; and string match -q -- '-*' $begun
        set -g __parley_found (__parley_find "$called,-" | string replace -r '^([^\t=]*)=' '$1')
    else
        set -g __parley_found (__parley_find "$called,$position")
    end
    test "$__parley_found" != '<files>'; or return
    set __parley_found $stem$__parley_found
end

# Prints @ and a file name for each file that begins with the typed text after @.
function __parley_texts
    set -l begun (string match -rg '^(?:--[^=]*=)?@(.*)$' -- (commandline -ct)); or return
    for file in $begun*
        test -d $file; and set file $file/
        printf '@%s\n' $file
    end
end

complete -c parley -e
# -k keeps the order of the words.
complete -c parley -n __parley_words -f -k -a '$__parley_found'
