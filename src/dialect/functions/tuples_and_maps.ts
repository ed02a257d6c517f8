import { arrayEmitters } from './emit/arrays.ts';
import { mapEmitters } from './emit/maps.ts';
import { scalar, unsupportedFunction, type FunctionDefinition } from './function_definition.ts';

/** Functions of tuples and maps. */
export const tupleAndMapFunctions: readonly FunctionDefinition[] = [
  scalar('tupleElement', ['tuple', 'any', 'any?'], 'any', 'An element of a tuple.', {
    sql: arrayEmitters.tupleElement,
    cases: {
      "tupleElement((1, 'a'), 1)": 1,
      "tupleElement((1, 'a'), 2)": 'a',
      'tupleElement(((1, 2), 3), 1)': [1, 2],
    },
  }),
  unsupportedFunction('untuple', 'The elements of a tuple as columns.', 'Select the elements: t.1, t.2.'),
  scalar('map', ['any...'], 'map', 'A map of keys and values.', {
    sql: mapEmitters.map,
    cases: {
      "map('a', 1, 'b', 2)": { a: 1, b: 2 },
      "map('a', 'x')": { a: 'x' },
      "map('a', [1, 2])": { a: [1, 2] },
    },
  }),
  scalar(
    'mapFromArrays',
    ['array(any)', 'array(any)'],
    'map',
    'A map from an array of keys and an array of values.',
    {
      sql: mapEmitters.mapFromArrays,
      cases: {
        "mapFromArrays(['a', 'b'], [1, 2])": { a: 1, b: 2 },
        "mapFromArrays(['x'], ['y'])": { x: 'y' },
        "mapFromArrays(['a'], [1.5])": { a: 1.5 },
      },
    },
  ),
  scalar('mapKeys', ['map'], 'array(any)', 'The keys of a map.', {
    sql: mapEmitters.mapKeys,
    cases: {
      "mapKeys(map('a', 1, 'b', 2))": ['a', 'b'],
      "mapKeys(map('x', 'y'))": ['x'],
      "mapKeys(mapFromArrays(['k'], [1]))": ['k'],
    },
  }),
  scalar('mapValues', ['map'], 'array(any)', 'The values of a map.', {
    sql: mapEmitters.mapValues,
    cases: {
      "mapValues(map('a', 1, 'b', 2))": [1, 2],
      "mapValues(map('x', 'y'))": ['y'],
      "mapValues(mapFromArrays(['k'], [1]))": [1],
    },
  }),
  scalar('mapContains', ['map', 'any'], 'boolean', 'Whether a map contains a key.', {
    sql: mapEmitters.mapContains,
    cases: { "mapContains(map('a', 1), 'a')": true, "mapContains(map('a', 1), 'b')": false },
  }),
];
