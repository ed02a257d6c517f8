import { conversionEmitters } from './emit/conversions.ts';
import { numberFormattingEmitters } from './emit/number_formatting.ts';
import { scalar, unsupportedFunction, type FunctionDefinition } from './function_definition.ts';

/** Type conversions. Those without a suffix return null for unreadable values. */
export const conversionFunctions: readonly FunctionDefinition[] = [
  scalar('toInt', ['any'], 'integer', 'The value as an integer, or null.', {
    sql: conversionEmitters.toInt,
  }),
  scalar('toIntOrZero', ['any'], 'integer', 'The value as an integer, or 0.', {
    sql: conversionEmitters.toIntOrZero,
  }),
  scalar('toFloat', ['any'], 'float', 'The value as a number, or null.', {
    sql: conversionEmitters.toFloat,
  }),
  scalar('toFloatOrZero', ['any'], 'float', 'The value as a number, or 0.', {
    sql: conversionEmitters.toFloatOrZero,
  }),
  scalar('toFloatOrDefault', ['any', 'number?'], 'float', 'The value as a number, or another.', {
    sql: conversionEmitters.toFloatOrDefault,
  }),
  scalar('toDecimal', ['any', 'integer'], 'decimal', 'The value as a decimal number, or null.', {
    sql: conversionEmitters.toDecimal,
  }),
  scalar('toString', ['any'], 'string', 'The value as a string.', {
    sql: conversionEmitters.toString,
  }),
  scalar('toBool', ['any'], 'boolean', 'The value as true or false.', {
    sql: conversionEmitters.toBool,
  }),
  scalar('toUUID', ['any'], 'uuid', 'The value as a UUID, or null.', {
    sql: conversionEmitters.toUUID,
  }),
  scalar('toJSONString', ['any'], 'string', 'The value as a JSON string.', {
    sql: conversionEmitters.toJSONString,
  }),
  scalar('toTypeName', ['any'], 'string', 'The name of the type of a value.', {
    sql: conversionEmitters.toTypeName,
  }),
  scalar('accurateCastOrNull', ['any', 'string'], 'any', 'The value as another type, or null.', {
    sql: conversionEmitters.accurateCastOrNull,
  }),
  scalar('hex', ['any'], 'string', 'A number or the bytes of a string as hexadecimal digits.', {
    sql: conversionEmitters.hex,
  }),
  scalar('unhex', ['string'], 'string', 'The bytes of hexadecimal digits.', {
    sql: conversionEmitters.unhex,
  }),
  unsupportedFunction(
    'cityHash64',
    'A hash of the values.',
    'PostgreSQL cannot compute this hash; use md5(…) instead.',
  ),
  scalar('formatReadableSize', ['number'], 'string', 'A number of bytes in human-readable form.', {
    sql: numberFormattingEmitters.formatReadableSize,
  }),
  scalar('formatReadableQuantity', ['number'], 'string', 'A number in human-readable form.', {
    sql: numberFormattingEmitters.formatReadableQuantity,
  }),
  scalar(
    'formatReadableTimeDelta',
    ['number', 'string?'],
    'string',
    'A number of seconds in human-readable form.',
    {
      sql: numberFormattingEmitters.formatReadableTimeDelta,
    },
  ),
  scalar('bar', ['number', 'number', 'number', 'integer?'], 'string', 'A bar drawn with characters.', {
    ranges: [{ index: 3, min: 1, max: 1000 }],
    sql: numberFormattingEmitters.bar,
  }),
  scalar('languageCodeToName', ['string'], 'string', 'The name of a language.', {
    sql: conversionEmitters.languageCodeToName,
  }),
];
