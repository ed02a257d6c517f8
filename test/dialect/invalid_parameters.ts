/** Calls with an argument out of range: the column of the error and its message. */
export const invalidParameters: readonly (readonly [call: string, column: number, message: string])[] = [
  ['topK(0)(number)', 13, "Parameter 1 of 'topK' must be an integer from 1 to 16777215."],
  ['topK(1.5)(number)', 13, "Parameter 1 of 'topK' must be an integer from 1 to 16777215."],
  ['topK(-1)(number)', 13, "Parameter 1 of 'topK' must be an integer from 1 to 16777215."],
  ["topKIf('a')(number, true)", 15, "Parameter 1 of 'topKIf' must be an integer from 1 to 16777215."],
  ['groupArray(0)(number)', 19, "Parameter 1 of 'groupArray' must be an integer of at least 1."],
  ['groupUniqArray(1.5)(number)', 23, "Parameter 1 of 'groupUniqArray' must be an integer of at least 1."],
  [
    'groupArraySample(2, -1)(number)',
    28,
    "Parameter 2 of 'groupArraySample' must be an integer of at least 0.",
  ],
  [
    'groupArrayMovingAvg(0)(number)',
    28,
    "Parameter 1 of 'groupArrayMovingAvg' must be an integer of at least 1.",
  ],
  ['windowFunnel(-1)(now(), true)', 21, "Parameter 1 of 'windowFunnel' must be an integer of at least 0."],
  ['windowFunnel(1.5)(now(), true)', 21, "Parameter 1 of 'windowFunnel' must be an integer of at least 0."],
  ["ngrams('abc', 0)", 22, "Argument 2 of 'ngrams' must be an integer of at least 1."],
  ["leftPad('abc', -1)", 23, "Argument 2 of 'leftPad' must be an integer of at least 0."],
  ['range(-3)', 14, "Argument 1 of 'range' must be an integer of at least 0."],
  ['range(0, 10, 0)', 8, "'range' can create at most 100,000 items."],
  ['arrayWithConstant(-1, 1)', 26, "Argument 1 of 'arrayWithConstant' must be an integer of at least 0."],
  ['toStartOfWeek(now(), -1)', 29, "Argument 2 of 'toStartOfWeek' must be an integer from 0 to 255."],
  [
    "toDateTime64('2026-01-01 00:00:00', 10)",
    44,
    "Argument 2 of 'toDateTime64' must be an integer from 0 to 9.",
  ],
  ['bitShiftLeft(number, -1)', 29, "Argument 2 of 'bitShiftLeft' must be an integer of at least 0."],
  ['bitTest(number, 64)', 24, "Argument 2 of 'bitTest' must be an integer from 0 to 63."],
  ['bar(number, 0, 10, 0)', 27, "Argument 4 of 'bar' must be an integer from 1 to 1000."],
  ["position('abc', 'b', -1)", 29, "Argument 3 of 'position' must be an integer of at least 0."],
  ["regexpExtract('abc', '(b)', -1)", 36, "Argument 3 of 'regexpExtract' must be an integer of at least 0."],
  ['nth_value(number, 0) OVER ()', 26, "Argument 2 of 'nth_value' must be an integer of at least 1."],
  ['lagInFrame(number, -1) OVER ()', 27, "Argument 2 of 'lagInFrame' must be an integer of at least 0."],
  [
    "splitByChar('ab', 'abc')",
    20,
    "The separator of 'splitByChar' must be a single ASCII character. Use splitByString(…).",
  ],
  [
    "toHour(CAST('2026-01-01' AS DateTime('Mars/Base')))",
    45,
    "Unknown time zone. Use an IANA name such as 'Europe/Berlin'.",
  ],
  ["match('abc', 'a(')", 8, 'Invalid regular expression.'],
  // Each bracket that is not closed was once searched for its end again: 53 seconds for this one.
  [`match('abc', '${'['.repeat(100_000)}')`, 8, 'A regular expression has at most 10000 characters.'],
  [`match('abc', '${'['.repeat(10_000)}')`, 8, 'Invalid regular expression.'],
  [
    "match('abc', 'a{2,256}')",
    8,
    'This regular expression repeats something more than 255 times. Nest the repetition: (?:a{100}){3}.',
  ],
  [
    "match('abc', '[0-9[:letter:]]')",
    8,
    'This regular expression contains [:letter:], which is not a character class.',
  ],
  [
    "match('abc', '(?x)a+')",
    8,
    'This regular expression contains the flag x, which is not supported. Supported flags are i, m, s and U.',
  ],
  [
    "match('abc', 'a(?=b)')",
    8,
    'This regular expression contains (?=, which is not supported. Combine several conditions instead.',
  ],
  [
    "extract('abc', '(?:(a)|b)*')",
    23,
    'This regular expression repeats a group that its last repetition may skip, which is not supported. Use (?:…) for the group.',
  ],
  [
    "extract('abc', '(a?)*')",
    23,
    'PostgreSQL cannot follow the order in which this regular expression prefers its matches. Use [^/]* instead of .*?, write longer alternatives first, or end it with $.',
  ],
  [
    "extract('abc', '(a){2,3}?(ab|b)')",
    23,
    'PostgreSQL cannot follow the order in which this regular expression prefers its matches. Use [^/]* instead of .*?, write longer alternatives first, or end it with $.',
  ],
  [
    `extract('abc', '${'(a|ab)'.repeat(500)}')`,
    23,
    'This regular expression is too complex for PostgreSQL. Use fewer alternatives and repetitions, or several expressions.',
  ],
  [
    "extract('abc', toString(number))",
    23,
    'This regular expression must be a string literal. Only match(…), multiMatchAny(…) and =~ accept other expressions.',
  ],
  [
    "match('abc', '(a)\\\\1')",
    8,
    'This regular expression contains \\1, which is not supported. List the characters in brackets.',
  ],
  ["match('abc', '[^]')", 8, 'Invalid regular expression.'],
  ["match('abc', '[[:alpha:]')", 8, 'Invalid regular expression.'],
  [
    "match('abc', '\\\\x{110000}')",
    8,
    'This regular expression contains \\x{110000}, which is not supported.',
  ],
];

/** The same functions with arguments at their limits. */
export const validParameters: readonly string[] = [
  ...['topK(1)(number)', 'topK(16777215)(number)', 'groupArray(1)(number)', 'windowFunnel(0)(now(), true)'],
  ...["ngrams('abc', 1)", "leftPad('abc', 0)", 'range(0)', 'range(0, 10, -1)', 'bitTest(number, 63)'],
  ...['bar(number, 0, 10, 1000)', 'toStartOfWeek(now(), 255)', 'nth_value(number, 1) OVER ()'],
  ...["match('abc', 'a{2,255}[[:alpha:]]')", "match('abc', '\\\\{256}[:letter:]')"],
  ...['bitTest(number, number - 9)', "leftPad('abc', number - 9)", 'lag(number, -1) OVER ()'],
];
