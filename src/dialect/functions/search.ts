import { stringSearchEmitters } from './emit/string_search.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Search and replacement, also by regular expressions. */
export const searchFunctions: readonly FunctionDefinition[] = [
  scalar('startsWith', ['string', 'string'], 'boolean', 'Whether a string starts with another.', {
    sql: stringSearchEmitters.startsWith,
  }),
  scalar('endsWith', ['string', 'string'], 'boolean', 'Whether a string ends with another.', {
    sql: stringSearchEmitters.endsWith,
  }),
  scalar(
    'position',
    ['string', 'string', 'integer?'],
    'integer',
    'The position of a substring, from 1; 0 if not found.',
    {
      ranges: [{ index: 2, min: 0 }],
      sql: stringSearchEmitters.position,
    },
  ),
  scalar(
    'positionCaseInsensitive',
    ['string', 'string', 'integer?'],
    'integer',
    'The same, case-insensitive.',
    {
      ranges: [{ index: 2, min: 0 }],
      sql: stringSearchEmitters.positionCaseInsensitive,
    },
  ),
  scalar(
    'locate',
    ['string', 'string', 'integer?'],
    'integer',
    'The position of the first string in the second.',
    {
      ranges: [{ index: 2, min: 0 }],
      sql: stringSearchEmitters.locate,
    },
  ),
  scalar('match', ['string', 'string'], 'boolean', 'Whether a string matches a regular expression.', {
    sql: stringSearchEmitters.match,
  }),
  scalar(
    'multiMatchAny',
    ['string', 'array(string)'],
    'boolean',
    'Whether a string matches any of several regular expressions.',
    {
      sql: stringSearchEmitters.multiMatchAny,
    },
  ),
  scalar('extract', ['string', 'string'], 'string', 'The first match of a regular expression.', {
    sql: stringSearchEmitters.extract,
  }),
  scalar('extractAll', ['string', 'string'], 'array(string)', 'All matches of a regular expression.', {
    sql: stringSearchEmitters.extractAll,
  }),
  scalar('extractGroups', ['string', 'string'], 'array(string)', 'The groups of the first match.', {
    sql: stringSearchEmitters.extractGroups,
  }),
  scalar('regexpExtract', ['string', 'string', 'integer?'], 'string', 'A group of the first match.', {
    ranges: [{ index: 2, min: 0 }],
    sql: stringSearchEmitters.regexpExtract,
  }),
  scalar('countSubstrings', ['string', 'string'], 'integer', 'Number of occurrences of a substring.', {
    sql: stringSearchEmitters.countSubstrings,
  }),
  scalar('countMatches', ['string', 'string'], 'integer', 'Number of matches of a regular expression.', {
    sql: stringSearchEmitters.countMatches,
  }),
  scalar('hasToken', ['string', 'string'], 'boolean', 'Whether a string contains a word.', {
    sql: stringSearchEmitters.hasToken,
  }),
  scalar(
    'replaceOne',
    ['string', 'string', 'string'],
    'string',
    'The first occurrence of a substring replaced.',
    {
      sql: stringSearchEmitters.replaceOne,
    },
  ),
  scalar('replaceAll', ['string', 'string', 'string'], 'string', 'All occurrences of a substring replaced.', {
    sql: stringSearchEmitters.replaceAll,
  }),
  standardScalar(
    'replace',
    ['string', 'string', 'string'],
    'string',
    'All occurrences of a substring replaced.',
    {
      sql: 'replace($1, $2, $3)',
    },
  ),
  scalar(
    'replaceRegexpOne',
    ['string', 'string', 'string'],
    'string',
    'The first match of a regular expression replaced.',
    {
      sql: stringSearchEmitters.replaceRegexpOne,
    },
  ),
  scalar(
    'replaceRegexpAll',
    ['string', 'string', 'string'],
    'string',
    'All matches of a regular expression replaced.',
    {
      sql: stringSearchEmitters.replaceRegexpAll,
    },
  ),
  scalar('translate', ['string', 'string', 'string'], 'string', 'Characters replaced by others.', {
    sql: 'translate($1, $2, $3)',
  }),
];
