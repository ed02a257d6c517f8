import { jsonEmitters } from './emit/json.ts';
import { scalar, type FunctionDefinition } from './function_definition.ts';

/** JSON functions. A path may have any number of keys and indexes. */
export const jsonFunctions: readonly FunctionDefinition[] = [
  scalar('JSONHas', ['any', 'any...'], 'boolean', 'Whether there is a value at a path.', {
    sql: jsonEmitters.JSONHas,
  }),
  scalar('JSONLength', ['any', 'any...'], 'integer', 'Number of items of an array or fields of an object.', {
    sql: jsonEmitters.JSONLength,
  }),
  scalar('JSONType', ['any', 'any...'], 'string', 'The type of the value at a path.', {
    sql: jsonEmitters.JSONType,
  }),
  scalar('JSONExtract', ['any', 'any', 'any...'], 'any', 'The value at a path as the type given last.', {
    sql: jsonEmitters.JSONExtract,
  }),
  scalar('JSONExtractString', ['any', 'any...'], 'string', "The string at a path, or ''.", {
    sql: jsonEmitters.JSONExtractString,
  }),
  scalar('JSONExtractInt', ['any', 'any...'], 'integer', 'The integer at a path, or 0.', {
    sql: jsonEmitters.JSONExtractInt,
  }),
  scalar('JSONExtractUInt', ['any', 'any...'], 'integer', 'The positive integer at a path, or 0.', {
    sql: jsonEmitters.JSONExtractUInt,
  }),
  scalar('JSONExtractFloat', ['any', 'any...'], 'float', 'The number at a path, or 0.', {
    sql: jsonEmitters.JSONExtractFloat,
  }),
  scalar('JSONExtractBool', ['any', 'any...'], 'boolean', 'The boolean at a path, or false.', {
    sql: jsonEmitters.JSONExtractBool,
  }),
  scalar('JSONExtractRaw', ['any', 'any...'], 'string', 'The JSON at a path as a string.', {
    sql: jsonEmitters.JSONExtractRaw,
  }),
  scalar(
    'JSONExtractArrayRaw',
    ['any', 'any...'],
    'array(string)',
    'The items of an array as JSON strings.',
    {
      sql: jsonEmitters.JSONExtractArrayRaw,
    },
  ),
  scalar('JSONExtractKeys', ['any', 'any...'], 'array(string)', 'The keys of an object.', {
    sql: jsonEmitters.JSONExtractKeys,
  }),
  scalar(
    'JSONExtractKeysAndValuesRaw',
    ['any', 'any...'],
    'array(tuple)',
    'Keys and JSON strings of the fields of an object.',
    {
      sql: jsonEmitters.JSONExtractKeysAndValuesRaw,
    },
  ),
  scalar('JSON_VALUE', ['any', 'string'], 'string', 'The value at an SQL/JSON path.', {
    sql: jsonEmitters.JSON_VALUE,
  }),
  scalar('isValidJSON', ['string'], 'boolean', 'Whether a string is JSON.', {
    sql: jsonEmitters.isValidJSON,
  }),
  scalar('JSONArrayLength', ['any'], 'integer', 'Number of items of an array, or null.', {
    sql: jsonEmitters.JSONArrayLength,
  }),
];
