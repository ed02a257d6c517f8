import { stringEmitters } from './emit/strings.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Functions of strings. */
export const stringFunctions: readonly FunctionDefinition[] = [
  standardScalar('length', ['any'], 'integer', 'Number of bytes of a string, or of items of an array.', {
    sql: stringEmitters.length,
  }),
  scalar('lengthUTF8', ['string'], 'integer', 'Number of characters of a string.', {
    sql: 'char_length($1)',
  }),
  standardScalar('lower', ['string'], 'string', 'The string in lower case.', {
    sql: stringEmitters.lower,
  }),
  standardScalar('upper', ['string'], 'string', 'The string in upper case.', {
    sql: stringEmitters.upper,
  }),
  standardScalar('concat', ['any...'], 'string', 'The values as one string, without nulls.', {
    sql: stringEmitters.concat,
  }),
  scalar(
    'concatWithSeparator',
    ['string', 'any...'],
    'string',
    'The values as one string, joined by a separator.',
    {
      sql: stringEmitters.concatWithSeparator,
    },
  ),
  standardScalar(
    'substring',
    ['string', 'integer', 'integer?'],
    'string',
    'A substring; offsets start at 1.',
    {
      sql: stringEmitters.substring,
    },
  ),
  standardScalar('left', ['string', 'integer'], 'string', 'The start of a string.', {
    sql: stringEmitters.left,
  }),
  standardScalar('right', ['string', 'integer'], 'string', 'The end of a string.', {
    sql: stringEmitters.right,
  }),
  standardScalar('reverse', ['any'], 'any', 'A string or an array reversed.', {
    sql: stringEmitters.reverse,
  }),
  standardScalar('repeat', ['string', 'integer'], 'string', 'A string repeated.', {
    sql: stringEmitters.repeat,
  }),
  standardScalar('trim', ['string', 'string?'], 'string', 'A string without leading and trailing spaces.', {
    sql: stringEmitters.trim,
  }),
  scalar('trimLeft', ['string', 'string?'], 'string', 'A string without leading spaces.', {
    sql: stringEmitters.trimLeft,
  }),
  scalar('trimRight', ['string', 'string?'], 'string', 'A string without trailing spaces.', {
    sql: stringEmitters.trimRight,
  }),
  scalar('leftPad', ['string', 'integer', 'string?'], 'string', 'A string padded on the left.', {
    ranges: [{ index: 1, min: 0 }],
    sql: stringEmitters.leftPad,
  }),
  scalar('rightPad', ['string', 'integer', 'string?'], 'string', 'A string padded on the right.', {
    ranges: [{ index: 1, min: 0 }],
    sql: stringEmitters.rightPad,
  }),
  scalar('empty', ['any'], 'boolean', 'Whether a string or an array is empty.', {
    sql: stringEmitters.empty,
  }),
  scalar('notEmpty', ['any'], 'boolean', 'Whether a string or an array is not empty.', {
    sql: stringEmitters.notEmpty,
  }),
  scalar('format', ['string', 'any...'], 'string', 'A string with values in place of {}.', {
    sql: stringEmitters.format,
  }),
  standardScalar('initcap', ['string'], 'string', 'The string with each word capitalized.', {
    sql: stringEmitters.initcap,
  }),
  standardScalar('ascii', ['string'], 'integer', 'The code of the first character.', {
    sql: stringEmitters.ascii,
  }),
  scalar('base64Encode', ['string'], 'string', 'The bytes of a string in base64.', {
    sql: stringEmitters.base64Encode,
  }),
  scalar('base64Decode', ['string'], 'string', 'The bytes decoded from base64.', {
    sql: stringEmitters.base64Decode,
  }),
  scalar('md5', ['string'], 'string', 'The MD5 hash of a string.', {
    sql: stringEmitters.md5,
  }),
];
