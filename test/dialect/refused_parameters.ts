/** Calls with a number outside of what the function takes: the column of the fault, and what is said. */
export const refusedParameters: readonly (readonly [call: string, column: number, message: string])[] = [
  ['topK(0)(number)', 13, "The parameter 1 of 'topK' is a whole number from 1 to 16777215."],
  ['topK(1.5)(number)', 13, "The parameter 1 of 'topK' is a whole number from 1 to 16777215."],
  ['topK(-1)(number)', 13, "The parameter 1 of 'topK' is a whole number from 1 to 16777215."],
  ["topKIf('a')(number, true)", 15, "The parameter 1 of 'topKIf' is a whole number from 1 to 16777215."],
  ['groupArray(0)(number)', 19, "The parameter 1 of 'groupArray' is a whole number from 1."],
  ['groupUniqArray(1.5)(number)', 23, "The parameter 1 of 'groupUniqArray' is a whole number from 1."],
  ['groupArraySample(2, -1)(number)', 28, "The parameter 2 of 'groupArraySample' is a whole number from 0."],
  [
    'groupArrayMovingAvg(0)(number)',
    28,
    "The parameter 1 of 'groupArrayMovingAvg' is a whole number from 1.",
  ],
  ['windowFunnel(-1)(now(), true)', 21, "The parameter 1 of 'windowFunnel' is a whole number from 0."],
  ['windowFunnel(1.5)(now(), true)', 21, "The parameter 1 of 'windowFunnel' is a whole number from 0."],
  ["ngrams('abc', 0)", 22, "The argument 2 of 'ngrams' is a whole number from 1."],
  ["leftPad('abc', -1)", 23, "The argument 2 of 'leftPad' is a whole number from 0."],
  ['range(-3)', 14, "The argument 1 of 'range' is a whole number from 0."],
  ['range(0, 10, 0)', 8, "'range' makes at most 100,000 items."],
  ['arrayWithConstant(-1, 1)', 26, "The argument 1 of 'arrayWithConstant' is a whole number from 0."],
  ['toStartOfWeek(now(), -1)', 29, "The argument 2 of 'toStartOfWeek' is a whole number from 0 to 255."],
  [
    "toDateTime64('2026-01-01 00:00:00', 10)",
    44,
    "The argument 2 of 'toDateTime64' is a whole number from 0 to 9.",
  ],
  ['bitShiftLeft(number, -1)', 29, "The argument 2 of 'bitShiftLeft' is a whole number from 0."],
  ['bitTest(number, 64)', 24, "The argument 2 of 'bitTest' is a whole number from 0 to 63."],
  ['bar(number, 0, 10, 0)', 27, "The argument 4 of 'bar' is a whole number from 1 to 1000."],
  ["position('abc', 'b', -1)", 29, "The argument 3 of 'position' is a whole number from 0."],
  ["regexpExtract('abc', '(b)', -1)", 36, "The argument 3 of 'regexpExtract' is a whole number from 0."],
  ['nth_value(number, 0) OVER ()', 26, "The argument 2 of 'nth_value' is a whole number from 1."],
  ['lagInFrame(number, -1) OVER ()', 27, "The argument 2 of 'lagInFrame' is a whole number from 0."],
  [
    "splitByChar('ab', 'abc')",
    20,
    "The separator of 'splitByChar' is one character of ASCII. Write splitByString(…).",
  ],
  [
    "toHour(CAST('2026-01-01' AS DateTime('Mars/Base')))",
    45,
    "There is no time zone of this name. Write one of a place, such as 'Europe/Berlin'.",
  ],
  ["match('abc', 'a(')", 8, 'This is no regular expression.'],
  [
    "match('abc', 'a{2,256}')",
    8,
    'This regular expression repeats something more than 255 times. Repeat a group of it: (?:a{100}){3}.',
  ],
  [
    "match('abc', '[0-9[:letter:]]')",
    8,
    'This regular expression has [:letter:], which is no class of characters.',
  ],
  [
    "match('abc', '(?U)a+')",
    8,
    'This regular expression has the flag U, which is not supported. Flags are i, m and s.',
  ],
  [
    "match('abc', 'a(?i:b)')",
    8,
    'This regular expression has (?i:, which is not supported. Flags such as (?i) stand at its beginning, groups have no names.',
  ],
  [
    "match('abc', '(a)\\\\1')",
    8,
    'This regular expression has \\1, which is not supported. Name the characters in brackets.',
  ],
  ["match('abc', '[^]')", 8, 'This is no regular expression.'],
  ["match('abc', '[[:alpha:]')", 8, 'This is no regular expression.'],
  ["match('abc', '\\\\x{110000}')", 8, 'This regular expression has \\x{110000}, which is not supported.'],
];

/** The same functions at the bounds of what they take. */
export const acceptedParameters: readonly string[] = [
  ...['topK(1)(number)', 'topK(16777215)(number)', 'groupArray(1)(number)', 'windowFunnel(0)(now(), true)'],
  ...["ngrams('abc', 1)", "leftPad('abc', 0)", 'range(0)', 'range(0, 10, -1)', 'bitTest(number, 63)'],
  ...['bar(number, 0, 10, 1000)', 'toStartOfWeek(now(), 255)', 'nth_value(number, 1) OVER ()'],
  ...["match('abc', 'a{2,255}[[:alpha:]]')", "match('abc', '\\\\{256}[:letter:]')"],
  ...['bitTest(number, number - 9)', "leftPad('abc', number - 9)", 'lag(number, -1) OVER ()'],
];
