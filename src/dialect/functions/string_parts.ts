import { stringSplittingEmitters } from './emit/string_splitting.ts';
import { scalar, type FunctionDefinition } from './function_definition.ts';

/** Functions that split a string. */
export const stringPartFunctions: readonly FunctionDefinition[] = [
  scalar(
    'splitByChar',
    ['string', 'string', 'integer?'],
    'array(string)',
    'The parts between occurrences of a character.',
    {
      sql: stringSplittingEmitters.splitByChar,
      cases: {
        "splitByChar(',', 'a,b,c')": ['a', 'b', 'c'],
        "splitByChar(',', 'abc')": ['abc'],
        "splitByChar(',', '')": [''],
      },
    },
  ),
  scalar(
    'splitByString',
    ['string', 'string', 'integer?'],
    'array(string)',
    'The parts between occurrences of a separator.',
    {
      sql: stringSplittingEmitters.splitByString,
      cases: {
        "splitByString(', ', 'a, b, c')": ['a', 'b', 'c'],
        "splitByString('x', 'abc')": ['abc'],
        "splitByString('ab', '')": [''],
      },
    },
  ),
  scalar(
    'splitByRegexp',
    ['string', 'string', 'integer?'],
    'array(string)',
    'The parts between matches of a regular expression.',
    {
      sql: stringSplittingEmitters.splitByRegexp,
      cases: {
        "splitByRegexp('\\\\d+', 'a1b22c')": ['a', 'b', 'c'],
        "splitByRegexp('x', 'abc')": ['abc'],
        "splitByRegexp(',', '')": [''],
      },
    },
  ),
  scalar('splitByWhitespace', ['string', 'integer?'], 'array(string)', 'The parts between whitespace.', {
    sql: stringSplittingEmitters.splitByWhitespace,
    cases: {
      "splitByWhitespace('a  b c')": ['a', 'b', 'c'],
      "splitByWhitespace(' a b ')": ['a', 'b'],
      "splitByWhitespace('')": [],
    },
  }),
  scalar('alphaTokens', ['string', 'integer?'], 'array(string)', 'The words that consist of letters.', {
    sql: stringSplittingEmitters.alphaTokens,
    cases: {
      "alphaTokens('abc1de;f')": ['abc', 'de', 'f'],
      "alphaTokens('')": [],
      "alphaTokens('Hello World')": ['Hello', 'World'],
    },
  }),
  scalar('ngrams', ['string', 'integer'], 'array(string)', 'All substrings of a length.', {
    ranges: [{ index: 1, min: 1 }],
    sql: stringSplittingEmitters.ngrams,
    cases: { "ngrams('abcd', 2)": ['ab', 'bc', 'cd'], "ngrams('ab', 3)": [], "ngrams('abc', 3)": ['abc'] },
  }),
];
