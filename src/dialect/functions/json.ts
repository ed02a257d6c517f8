import { scalar, type FunctionDefinition, type ValueType } from './function_definition.ts';

/** A path may have any number of keys and indexes. */
const read = (name: string, returns: ValueType, description: string): FunctionDefinition =>
  scalar(name, ['any', 'any...'], returns, description);

/** JSON functions. */
export const jsonFunctions: readonly FunctionDefinition[] = [
  read('JSONHas', 'boolean', 'Whether there is a value at a path.'),
  read('JSONLength', 'integer', 'Number of items of an array or fields of an object.'),
  read('JSONType', 'string', 'The type of the value at a path.'),
  scalar('JSONExtract', ['any', 'any', 'any...'], 'any', 'The value at a path as the type given last.'),
  read('JSONExtractString', 'string', "The string at a path, or ''."),
  read('JSONExtractInt', 'integer', 'The integer at a path, or 0.'),
  read('JSONExtractUInt', 'integer', 'The positive integer at a path, or 0.'),
  read('JSONExtractFloat', 'float', 'The number at a path, or 0.'),
  read('JSONExtractBool', 'boolean', 'The boolean at a path, or false.'),
  read('JSONExtractRaw', 'string', 'The JSON at a path as a string.'),
  read('JSONExtractArrayRaw', 'array(string)', 'The items of an array as JSON strings.'),
  read('JSONExtractKeys', 'array(string)', 'The keys of an object.'),
  read('JSONExtractKeysAndValuesRaw', 'array(tuple)', 'Keys and JSON strings of the fields of an object.'),
  scalar('JSON_VALUE', ['any', 'string'], 'string', 'The value at an SQL/JSON path.'),
  scalar('isValidJSON', ['string'], 'boolean', 'Whether a string is JSON.'),
  scalar('JSONArrayLength', ['any'], 'integer', 'Number of items of an array, or null.'),
];
