import { unsupported, scalar, type FunctionDefinition } from './function_definition.ts';

/** Type conversions. Those without a suffix return null for unreadable values. */
export const conversionFunctions: readonly FunctionDefinition[] = [
  scalar('toInt', ['any'], 'integer', 'The value as an integer, or null.'),
  scalar('toIntOrZero', ['any'], 'integer', 'The value as an integer, or 0.'),
  scalar('toFloat', ['any'], 'float', 'The value as a number, or null.'),
  scalar('toFloatOrZero', ['any'], 'float', 'The value as a number, or 0.'),
  scalar('toFloatOrDefault', ['any', 'number?'], 'float', 'The value as a number, or another.'),
  scalar('toDecimal', ['any', 'integer'], 'decimal', 'The value as a decimal number, or null.'),
  scalar('toString', ['any'], 'string', 'The value as a string.'),
  scalar('toBool', ['any'], 'boolean', 'The value as true or false.'),
  scalar('toUUID', ['any'], 'uuid', 'The value as a UUID, or null.'),
  scalar('toJSONString', ['any'], 'string', 'The value as a JSON string.'),
  scalar('toTypeName', ['any'], 'string', 'The name of the type of a value.'),
  scalar('accurateCastOrNull', ['any', 'string'], 'any', 'The value as another type, or null.'),
  scalar('hex', ['any'], 'string', 'A number or the bytes of a string as hexadecimal digits.'),
  scalar('unhex', ['string'], 'string', 'The bytes of hexadecimal digits.'),
  unsupported(
    scalar('cityHash64', ['any...'], 'integer', 'A hash of the values.'),
    'PostgreSQL cannot compute this hash; use md5(…) instead.',
  ),
  scalar('formatReadableSize', ['number'], 'string', 'A number of bytes in human-readable form.'),
  scalar('formatReadableQuantity', ['number'], 'string', 'A number in human-readable form.'),
  scalar(
    'formatReadableTimeDelta',
    ['number', 'string?'],
    'string',
    'A number of seconds in human-readable form.',
  ),
  scalar('bar', ['number', 'number', 'number', 'integer?'], 'string', 'A bar drawn with characters.'),
  scalar('languageCodeToName', ['string'], 'string', 'The name of a language.'),
];
