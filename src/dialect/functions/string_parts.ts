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
    },
  ),
  scalar(
    'splitByString',
    ['string', 'string', 'integer?'],
    'array(string)',
    'The parts between occurrences of a separator.',
    {
      sql: stringSplittingEmitters.splitByString,
    },
  ),
  scalar(
    'splitByRegexp',
    ['string', 'string', 'integer?'],
    'array(string)',
    'The parts between matches of a regular expression.',
    {
      sql: stringSplittingEmitters.splitByRegexp,
    },
  ),
  scalar('splitByWhitespace', ['string', 'integer?'], 'array(string)', 'The parts between whitespace.', {
    sql: stringSplittingEmitters.splitByWhitespace,
  }),
  scalar('alphaTokens', ['string', 'integer?'], 'array(string)', 'The words that consist of letters.', {
    sql: stringSplittingEmitters.alphaTokens,
  }),
  scalar('ngrams', ['string', 'integer'], 'array(string)', 'All substrings of a length.', {
    ranges: [{ index: 1, min: 1 }],
    sql: stringSplittingEmitters.ngrams,
  }),
];
