import { jsonEmitters } from './emit/json.ts';
import { scalar, type FunctionDefinition } from './function_definition.ts';

/** JSON functions. A path may have any number of keys and indexes. */
export const jsonFunctions: readonly FunctionDefinition[] = [
  scalar('JSONHas', ['any', 'any...'], 'boolean', 'Whether there is a value at a path.', {
    sql: jsonEmitters.JSONHas,
    cases: { "JSONHas('{\"a\":1}', 'a')": true, "JSONHas('{\"a\":1}', 'b')": false },
  }),
  scalar('JSONLength', ['any', 'any...'], 'integer', 'Number of items of an array or fields of an object.', {
    sql: jsonEmitters.JSONLength,
    cases: { "JSONLength('[1,2,3]')": 3, 'JSONLength(\'{"a":1,"b":2}\')': 2, "JSONLength('1')": 0 },
  }),
  scalar('JSONType', ['any', 'any...'], 'string', 'The type of the value at a path.', {
    sql: jsonEmitters.JSONType,
    cases: {
      'JSONType(\'{"a":1}\')': 'Object',
      "JSONType('{\"a\":1}', 'a')": 'Int64',
      'JSONType(\'{"a":"x"}\', \'a\')': 'String',
    },
  }),
  scalar('JSONExtract', ['any', 'any', 'any...'], 'any', 'The value at a path as the type given last.', {
    sql: jsonEmitters.JSONExtract,
    cases: {
      "JSONExtract('{\"a\":1}', 'a', 'Int64')": 1,
      "JSONExtract('{\"a\":\"x\"}', 'a', 'String')": 'x',
      "JSONExtract('{\"a\":1.5}', 'a', 'Float64')": 1.5,
    },
  }),
  scalar('JSONExtractString', ['any', 'any...'], 'string', "The string at a path, or ''.", {
    sql: jsonEmitters.JSONExtractString,
    cases: {
      'JSONExtractString(\'{"a":"x"}\', \'a\')': 'x',
      "JSONExtractString('{\"a\":1}', 'a')": '1',
      "JSONExtractString('{\"a\":null}', 'a')": '',
    },
  }),
  scalar('JSONExtractInt', ['any', 'any...'], 'integer', 'The integer at a path, or 0.', {
    sql: jsonEmitters.JSONExtractInt,
    cases: {
      "JSONExtractInt('{\"a\":5}', 'a')": 5,
      "JSONExtractInt('{\"a\":1.7}', 'a')": 1,
      "JSONExtractInt('{\"a\":null}', 'a')": 0,
    },
  }),
  scalar('JSONExtractUInt', ['any', 'any...'], 'integer', 'The positive integer at a path, or 0.', {
    sql: jsonEmitters.JSONExtractUInt,
    cases: {
      "JSONExtractUInt('{\"a\":5}', 'a')": 5,
      "JSONExtractUInt('{\"a\":-5}', 'a')": 0,
      'JSONExtractUInt(\'{"a":"7"}\', \'a\')': 7,
    },
  }),
  scalar('JSONExtractFloat', ['any', 'any...'], 'float', 'The number at a path, or 0.', {
    sql: jsonEmitters.JSONExtractFloat,
    cases: {
      "JSONExtractFloat('{\"a\":1.5}', 'a')": 1.5,
      "JSONExtractFloat('{\"a\":2}', 'a')": 2,
      "JSONExtractFloat('{}', 'a')": 0,
    },
  }),
  scalar('JSONExtractBool', ['any', 'any...'], 'boolean', 'The boolean at a path, or false.', {
    sql: jsonEmitters.JSONExtractBool,
    cases: { "JSONExtractBool('{\"a\":true}', 'a')": true, "JSONExtractBool('{\"a\":false}', 'a')": false },
  }),
  scalar('JSONExtractRaw', ['any', 'any...'], 'string', 'The JSON at a path as a string.', {
    sql: jsonEmitters.JSONExtractRaw,
    cases: {
      'JSONExtractRaw(\'{"a":"x"}\', \'a\')': '"x"',
      "JSONExtractRaw('{\"a\":[1,2]}', 'a')": '[1,2]',
      'JSONExtractRaw(\'{"a":{"b":1}}\', \'a\')': '{"b":1}',
    },
  }),
  scalar(
    'JSONExtractArrayRaw',
    ['any', 'any...'],
    'array(string)',
    'The items of an array as JSON strings.',
    {
      sql: jsonEmitters.JSONExtractArrayRaw,
      cases: {
        'JSONExtractArrayRaw(\'{"a":[1,"x",{"b":2}]}\', \'a\')': ['1', '"x"', '{"b":2}'],
        "JSONExtractArrayRaw('[1,2]')": ['1', '2'],
        "JSONExtractArrayRaw('{}', 'a')": [],
      },
    },
  ),
  scalar('JSONExtractKeys', ['any', 'any...'], 'array(string)', 'The keys of an object.', {
    sql: jsonEmitters.JSONExtractKeys,
    cases: {
      'JSONExtractKeys(\'{"a":1,"b":2}\')': ['a', 'b'],
      'JSONExtractKeys(\'{"a":{"x":1}}\', \'a\')': ['x'],
      "JSONExtractKeys('[]')": [],
    },
  }),
  scalar(
    'JSONExtractKeysAndValuesRaw',
    ['any', 'any...'],
    'array(tuple)',
    'Keys and JSON strings of the fields of an object.',
    {
      sql: jsonEmitters.JSONExtractKeysAndValuesRaw,
      cases: {
        'JSONExtractKeysAndValuesRaw(\'{"a":1,"b":"x"}\')': [
          ['a', '1'],
          ['b', '"x"'],
        ],
        'JSONExtractKeysAndValuesRaw(\'{"a":{"x":[1, 2]}}\', \'a\')': [['x', '[1,2]']],
        "JSONExtractKeysAndValuesRaw('{}')": [],
      },
    },
  ),
  scalar('JSON_VALUE', ['any', 'string'], 'string', 'The value at an SQL/JSON path.', {
    sql: jsonEmitters.JSON_VALUE,
    cases: {
      'JSON_VALUE(\'{"a":"x"}\', \'$.a\')': 'x',
      'JSON_VALUE(\'{"a":{"b":1}}\', \'$.a.b\')': '1',
      "JSON_VALUE('{\"a\":1}', '$.b')": '',
    },
  }),
  scalar('isValidJSON', ['string'], 'boolean', 'Whether a string is JSON.', {
    sql: jsonEmitters.isValidJSON,
    cases: { 'isValidJSON(\'{"a":1}\')': true, "isValidJSON('abc')": false, 'isValidJSON(NULL)': null },
  }),
  scalar('JSONArrayLength', ['any'], 'integer', 'Number of items of an array, or null.', {
    sql: jsonEmitters.JSONArrayLength,
    cases: { "JSONArrayLength('[1,2,3]')": 3, "JSONArrayLength('[]')": 0, "JSONArrayLength('{}')": null },
  }),
];
