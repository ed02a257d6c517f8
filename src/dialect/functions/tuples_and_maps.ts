import { arrayEmitters } from './emit/arrays.ts';
import { mapEmitters } from './emit/maps.ts';
import { scalar, unsupportedFunction, type FunctionDefinition } from './function_definition.ts';

/** Functions of tuples and maps. */
export const tupleAndMapFunctions: readonly FunctionDefinition[] = [
  scalar('tupleElement', ['tuple', 'any', 'any?'], 'any', 'An element of a tuple.', {
    sql: arrayEmitters.tupleElement,
  }),
  unsupportedFunction('untuple', 'The elements of a tuple as columns.', 'Select the elements: t.1, t.2.'),
  scalar('map', ['any...'], 'map', 'A map of keys and values.', {
    sql: mapEmitters.map,
  }),
  scalar(
    'mapFromArrays',
    ['array(any)', 'array(any)'],
    'map',
    'A map from an array of keys and an array of values.',
    {
      sql: mapEmitters.mapFromArrays,
    },
  ),
  scalar('mapKeys', ['map'], 'array(any)', 'The keys of a map.', {
    sql: mapEmitters.mapKeys,
  }),
  scalar('mapValues', ['map'], 'array(any)', 'The values of a map.', {
    sql: mapEmitters.mapValues,
  }),
  scalar('mapContains', ['map', 'any'], 'boolean', 'Whether a map contains a key.', {
    sql: mapEmitters.mapContains,
  }),
];
