import { scalar, type FunctionDefinition, type ValueType } from './definition.ts';

/** A path may have any number of keys and indexes. */
const read = (name: string, returns: ValueType, description: string): FunctionDefinition =>
  scalar(name, ['any', 'any...'], returns, description);

/** JSON functions. */
export const jsonFunctions: readonly FunctionDefinition[] = [
  read('JSONHas', 'boolean', 'Whether there is a value at a path.'),
  read('JSONLength', 'integer', 'Items of an array or members of an object.'),
  read('JSONType', 'string', 'The type of the value at a path.'),
  scalar('JSONExtract', ['any', 'any', 'any...'], 'any', 'The value at a path as the type named last.'),
  read('JSONExtractString', 'string', "The text at a path, or ''."),
  read('JSONExtractInt', 'integer', 'The integer at a path, or 0.'),
  read('JSONExtractUInt', 'integer', 'The positive integer at a path, or 0.'),
  read('JSONExtractFloat', 'float', 'The number at a path, or 0.'),
  read('JSONExtractBool', 'boolean', 'The boolean at a path, or false.'),
  read('JSONExtractRaw', 'string', 'The JSON text at a path.'),
  read('JSONExtractArrayRaw', 'array(string)', 'The items of an array as JSON texts.'),
  read('JSONExtractKeys', 'array(string)', 'The names of the members of an object.'),
  read('JSONExtractKeysAndValuesRaw', 'array(tuple)', 'Names and JSON texts of the members.'),
  scalar('JSON_VALUE', ['any', 'string'], 'string', 'The value at a path of SQL/JSON.'),
  scalar('isValidJSON', ['string'], 'boolean', 'Whether a text is JSON.'),
  scalar('JSONArrayLength', ['any'], 'integer', 'Items of an array, or null.'),
];
