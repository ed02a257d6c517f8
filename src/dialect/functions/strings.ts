import { stringEmitters } from './emit/strings.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Functions of strings. */
export const stringFunctions: readonly FunctionDefinition[] = [
  standardScalar('length', ['any'], 'integer', 'Number of bytes of a string, or of items of an array.', {
    sql: stringEmitters.length,
    cases: { "length('abc')": 3, "length('')": 0, "length('äö')": 4 },
  }),
  scalar('lengthUTF8', ['string'], 'integer', 'Number of characters of a string.', {
    sql: 'char_length($1)',
    cases: { "lengthUTF8('abc')": 3, "lengthUTF8('')": 0, "lengthUTF8('äö')": 2 },
  }),
  standardScalar('lower', ['string'], 'string', 'The string in lower case.', {
    sql: stringEmitters.lower,
    cases: { "lower('ABC')": 'abc', "lower('')": '', "lower('ÄB')": 'Äb' },
  }),
  standardScalar('upper', ['string'], 'string', 'The string in upper case.', {
    sql: stringEmitters.upper,
    cases: { "upper('abc')": 'ABC', "upper('')": '', "upper('äb')": 'äB' },
  }),
  standardScalar('concat', ['any...'], 'string', 'The values as one string, without nulls.', {
    sql: stringEmitters.concat,
    cases: { "concat('a', 'b')": 'ab', "concat('a', 1)": 'a1', "concat('', '')": '' },
  }),
  scalar(
    'concatWithSeparator',
    ['string', 'any...'],
    'string',
    'The values as one string, joined by a separator.',
    {
      sql: stringEmitters.concatWithSeparator,
      cases: {
        "concatWithSeparator(',', 'a', 'b')": 'a,b',
        "concatWithSeparator(',', 'a')": 'a',
        "concatWithSeparator('', 'a', 'b')": 'ab',
      },
    },
  ),
  standardScalar(
    'substring',
    ['string', 'integer', 'integer?'],
    'string',
    'A substring; offsets start at 1.',
    {
      sql: stringEmitters.substring,
      cases: {
        "substring('abcdef', 2)": 'bcdef',
        "substring('abcdef', 2, 3)": 'bcd',
        "substring('abcdef', -3)": 'def',
      },
    },
  ),
  standardScalar('left', ['string', 'integer'], 'string', 'The start of a string.', {
    sql: stringEmitters.left,
    cases: { "left('abc', 2)": 'ab', "left('abc', 0)": '', "left('abc', 10)": 'abc' },
  }),
  standardScalar('right', ['string', 'integer'], 'string', 'The end of a string.', {
    sql: stringEmitters.right,
    cases: { "right('abc', 2)": 'bc', "right('abc', 0)": '', "right('abc', 10)": 'abc' },
  }),
  standardScalar('reverse', ['any'], 'any', 'A string or an array reversed.', {
    sql: stringEmitters.reverse,
    cases: { "reverse('abc')": 'cba', "reverse('')": '', "reverse('a')": 'a' },
  }),
  standardScalar('repeat', ['string', 'integer'], 'string', 'A string repeated.', {
    sql: stringEmitters.repeat,
    cases: { "repeat('ab', 3)": 'ababab', "repeat('ab', 0)": '', 'repeat(NULL, 2)': null },
  }),
  standardScalar('trim', ['string', 'string?'], 'string', 'A string without leading and trailing spaces.', {
    sql: stringEmitters.trim,
    cases: { "trim('  a b  ')": 'a b', "trim('')": '', "trim('abc')": 'abc' },
  }),
  scalar('trimLeft', ['string', 'string?'], 'string', 'A string without leading spaces.', {
    sql: stringEmitters.trimLeft,
    cases: { "trimLeft('  ab ')": 'ab ', "trimLeft('')": '', "trimLeft('ab')": 'ab' },
  }),
  scalar('trimRight', ['string', 'string?'], 'string', 'A string without trailing spaces.', {
    sql: stringEmitters.trimRight,
    cases: { "trimRight(' ab  ')": ' ab', "trimRight('')": '', "trimRight('ab')": 'ab' },
  }),
  scalar('leftPad', ['string', 'integer', 'string?'], 'string', 'A string padded on the left.', {
    ranges: [{ index: 1, min: 0 }],
    sql: stringEmitters.leftPad,
    cases: { "leftPad('abc', 5)": '  abc', "leftPad('abc', 5, '*')": '**abc', "leftPad('abc', 2)": 'ab' },
  }),
  scalar('rightPad', ['string', 'integer', 'string?'], 'string', 'A string padded on the right.', {
    ranges: [{ index: 1, min: 0 }],
    sql: stringEmitters.rightPad,
    cases: { "rightPad('abc', 5)": 'abc  ', "rightPad('abc', 5, '*')": 'abc**', "rightPad('abc', 2)": 'ab' },
  }),
  scalar('empty', ['any'], 'boolean', 'Whether a string or an array is empty.', {
    sql: stringEmitters.empty,
    cases: { "empty('')": true, "empty('a')": false, 'empty(NULL)': null },
  }),
  scalar('notEmpty', ['any'], 'boolean', 'Whether a string or an array is not empty.', {
    sql: stringEmitters.notEmpty,
    cases: { "notEmpty('')": false, "notEmpty('a')": true, 'notEmpty(NULL)': null },
  }),
  scalar('format', ['string', 'any...'], 'string', 'A string with values in place of {}.', {
    sql: stringEmitters.format,
    cases: {
      "format('{} {}', 'a', 'b')": 'a b',
      "format('{1} {0}', 'a', 'b')": 'b a',
      "format('x', 'a')": 'x',
    },
  }),
  standardScalar('initcap', ['string'], 'string', 'The string with each word capitalized.', {
    sql: stringEmitters.initcap,
    cases: { "initcap('hello world')": 'Hello World', "initcap('HELLO')": 'Hello', "initcap('')": '' },
  }),
  standardScalar('ascii', ['string'], 'integer', 'The code of the first character.', {
    sql: stringEmitters.ascii,
    cases: { "ascii('a')": 97, "ascii('')": 0, "ascii('A')": 65 },
  }),
  scalar('base64Encode', ['string'], 'string', 'The bytes of a string in base64.', {
    sql: stringEmitters.base64Encode,
    cases: {
      "base64Encode('abc')": 'YWJj',
      "base64Encode('')": '',
      "base64Encode('Hello, World!')": 'SGVsbG8sIFdvcmxkIQ==',
    },
  }),
  scalar('base64Decode', ['string'], 'string', 'The bytes decoded from base64.', {
    sql: stringEmitters.base64Decode,
    cases: {
      "base64Decode('YWJj')": 'abc',
      "base64Decode('')": '',
      "base64Decode('SGVsbG8sIFdvcmxkIQ==')": 'Hello, World!',
    },
  }),
  scalar('md5', ['string'], 'string', 'The MD5 hash of a string.', {
    sql: stringEmitters.md5,
    cases: {
      "md5('abc')": '900150983cd24fb0d6963f7d28e17f72',
      "md5('')": 'd41d8cd98f00b204e9800998ecf8427e',
      'md5(NULL)': null,
    },
  }),
];
