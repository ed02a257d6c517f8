import { conversionEmitters } from './emit/conversions.ts';
import { numberFormattingEmitters } from './emit/number_formatting.ts';
import { scalar, unsupportedFunction, type FunctionDefinition } from './function_definition.ts';

/** Type conversions. Those without a suffix return null for unreadable values. */
export const conversionFunctions: readonly FunctionDefinition[] = [
  scalar('toInt', ['any'], 'integer', 'The value as an integer, or null.', {
    sql: conversionEmitters.toInt,
    cases: { "toInt('5')": 5, "toInt('-5')": -5, "toInt('')": null },
  }),
  scalar('toIntOrZero', ['any'], 'integer', 'The value as an integer, or 0.', {
    sql: conversionEmitters.toIntOrZero,
    cases: { "toIntOrZero('5')": 5, "toIntOrZero('-5')": -5, "toIntOrZero('')": 0 },
  }),
  scalar('toFloat', ['any'], 'float', 'The value as a number, or null.', {
    sql: conversionEmitters.toFloat,
    cases: { "toFloat('5')": 5, "toFloat('1.5')": 1.5, "toFloat('-1.5e3')": -1500 },
  }),
  scalar('toFloatOrZero', ['any'], 'float', 'The value as a number, or 0.', {
    sql: conversionEmitters.toFloatOrZero,
    cases: { "toFloatOrZero('1.5')": 1.5, "toFloatOrZero('')": 0, "toFloatOrZero('-2')": -2 },
  }),
  scalar('toFloatOrDefault', ['any', 'number?'], 'float', 'The value as a number, or another.', {
    sql: conversionEmitters.toFloatOrDefault,
    cases: {
      "toFloatOrDefault('1.5', toFloat64(7))": 1.5,
      "toFloatOrDefault('abc', toFloat64(7))": 7,
      "toFloatOrDefault('abc')": 0,
    },
  }),
  scalar('toDecimal', ['any', 'integer'], 'decimal', 'The value as a decimal number, or null.', {
    sql: conversionEmitters.toDecimal,
    cases: { "toDecimal('1.239', 2)": 1.23, "toDecimal('1.5', 4)": 1.5, "toDecimal('abc', 2)": null },
  }),
  scalar('toString', ['any'], 'string', 'The value as a string.', {
    sql: conversionEmitters.toString,
    cases: { 'toString(1)': '1', 'toString(1.5)': '1.5', 'toString(-0.25)': '-0.25' },
  }),
  scalar('toBool', ['any'], 'boolean', 'The value as true or false.', {
    sql: conversionEmitters.toBool,
    cases: { "toBool('true')": true, "toBool('false')": false, 'toBool(NULL)': null },
  }),
  scalar('toUUID', ['any'], 'uuid', 'The value as a UUID, or null.', {
    sql: conversionEmitters.toUUID,
    cases: {
      "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')": '61f0c404-5cb3-11e7-907b-a6006ad3dba0',
      "toUUID('abc')": null,
    },
  }),
  scalar('toJSONString', ['any'], 'string', 'The value as a JSON string.', {
    sql: conversionEmitters.toJSONString,
    cases: { 'toJSONString(1)': '1', "toJSONString('a')": '"a"', "toJSONString('a\"b')": '"a\\"b"' },
  }),
  scalar('toTypeName', ['any'], 'string', 'The name of the type of a value.', {
    sql: conversionEmitters.toTypeName,
    cases: {
      "toTypeName('a')": 'String',
      'toTypeName([toString(1)])': 'Array(String)',
      "toTypeName(toDate('2024-01-01'))": 'Nullable(Date)',
    },
  }),
  scalar('accurateCastOrNull', ['any', 'string'], 'any', 'The value as another type, or null.', {
    sql: conversionEmitters.accurateCastOrNull,
    cases: {
      "accurateCastOrNull('5', 'Int64')": 5,
      "accurateCastOrNull('x', 'Int64')": null,
      "accurateCastOrNull(5, 'String')": '5',
    },
  }),
  scalar('hex', ['any'], 'string', 'A number or the bytes of a string as hexadecimal digits.', {
    sql: conversionEmitters.hex,
    cases: { 'hex(255)': 'FF', 'hex(0)': '00', 'hex(1)': '01' },
  }),
  scalar('unhex', ['string'], 'string', 'The bytes of hexadecimal digits.', {
    sql: conversionEmitters.unhex,
    cases: { "unhex('616263')": 'abc', "unhex('')": '', 'unhex(NULL)': null },
  }),
  unsupportedFunction(
    'cityHash64',
    'A hash of the values.',
    'PostgreSQL cannot compute this hash; use md5(…) instead.',
  ),
  scalar('formatReadableSize', ['number'], 'string', 'A number of bytes in human-readable form.', {
    sql: numberFormattingEmitters.formatReadableSize,
    cases: {
      'formatReadableSize(0)': '0.00 B',
      'formatReadableSize(1)': '1.00 B',
      'formatReadableSize(1024)': '1.00 KiB',
    },
  }),
  scalar('formatReadableQuantity', ['number'], 'string', 'A number in human-readable form.', {
    sql: numberFormattingEmitters.formatReadableQuantity,
    cases: {
      'formatReadableQuantity(0)': '0.00',
      'formatReadableQuantity(1)': '1.00',
      'formatReadableQuantity(999)': '999.00',
    },
  }),
  scalar(
    'formatReadableTimeDelta',
    ['number', 'string?'],
    'string',
    'A number of seconds in human-readable form.',
    {
      sql: numberFormattingEmitters.formatReadableTimeDelta,
      cases: {
        'formatReadableTimeDelta(0)': '0 seconds',
        'formatReadableTimeDelta(1)': '1 second',
        'formatReadableTimeDelta(60)': '1 minute',
      },
    },
  ),
  scalar('bar', ['number', 'number', 'number', 'integer?'], 'string', 'A bar drawn with characters.', {
    ranges: [{ index: 3, min: 1, max: 1000 }],
    sql: numberFormattingEmitters.bar,
    cases: { 'bar(5, 0, 10, 10)': '█████', 'bar(0, 0, 10, 10)': '', 'bar(10, 0, 10, 10)': '██████████' },
  }),
  scalar('languageCodeToName', ['string'], 'string', 'The name of a language.', {
    sql: conversionEmitters.languageCodeToName,
    cases: {
      "languageCodeToName('en')": 'English',
      "languageCodeToName('de')": 'German',
      "languageCodeToName('fr')": 'French',
    },
  }),
];
