import type { CasesByFunction } from './case_rows.ts';

/** Cases of functions of arrays, tuples, maps and JSON values. */
export const collectionCases: CasesByFunction = {
  array: { 'array(1, 2, 3)': [1, 2, 3], "array('a', 'b')": ['a', 'b'], 'array(1, NULL)': [1, null] },
  range: { 'range(5)': [0, 1, 2, 3, 4], 'range(0)': [], 'range(2, 5)': [2, 3, 4] },
  has: { 'has([1, 2], 1)': true, 'has([1, 2], 3)': false },
  hasAll: { 'hasAll([1, 2, 3], [1, 2])': true, 'hasAll([1, 2], [3])': false },
  hasAny: { 'hasAny([1, 2, 3], [3, 4])': true, 'hasAny([1, 2], [3])': false },
  indexOf: { 'indexOf([1, 2, 1], 1)': 1, 'indexOf([1, 2], 2)': 2, 'indexOf([1, 2], 3)': 0 },
  arrayConcat: {
    'arrayConcat([1], [2])': [1, 2],
    'arrayConcat([1], [])': [1],
    "arrayConcat(['a'], ['b'], ['c'])": ['a', 'b', 'c'],
  },
  arrayElement: {
    'arrayElement([1, 2, 3], 1)': 1,
    'arrayElement([1, 2, 3], -1)': 3,
    'arrayElement([1, 2], 5)': 0,
  },
  arrayPushBack: {
    'arrayPushBack([1, 2], 3)': [1, 2, 3],
    "arrayPushBack(['a'], 'b')": ['a', 'b'],
    'arrayPushBack([1], NULL)': [1, null],
  },
  arrayPushFront: {
    'arrayPushFront([1, 2], 3)': [3, 1, 2],
    "arrayPushFront(['a'], 'b')": ['b', 'a'],
    'arrayPushFront([1], NULL)': [null, 1],
  },
  arrayPopBack: { 'arrayPopBack([1, 2, 3])': [1, 2], 'arrayPopBack([])': [], 'arrayPopBack([1, NULL])': [1] },
  arrayPopFront: {
    'arrayPopFront([1, 2, 3])': [2, 3],
    'arrayPopFront([])': [],
    'arrayPopFront([1, NULL])': [null],
  },
  arraySlice: {
    'arraySlice([1, 2, 3, 4], 2)': [2, 3, 4],
    'arraySlice([1, 2, 3, 4], 2, 2)': [2, 3],
    'arraySlice([1, 2, 3, 4], -2)': [3, 4],
  },
  arrayReverse: {
    'arrayReverse([1, 2, 3])': [3, 2, 1],
    'arrayReverse([])': [],
    "arrayReverse(['a', 'b'])": ['b', 'a'],
  },
  arrayUniq: { 'arrayUniq([1, 2, 1])': 2, 'arrayUniq([])': 0, "arrayUniq(['a', 'a'])": 1 },
  arrayDistinct: {
    'arrayDistinct([1, 2, 1, 3])': [1, 2, 3],
    'arrayDistinct([])': [],
    "arrayDistinct(['a', 'b', 'a'])": ['a', 'b'],
  },
  arrayJoin: {
    'count() from (select arrayJoin([1, NULL]) as x) as given': 2,
    'arraySort(groupArray(x)) from (select arrayJoin([3, 1, 2]) as x) as given': [1, 2, 3],
    "arraySort(groupArray(x)) from (select arrayJoin(['b', 'a']) as x) as given": ['a', 'b'],
  },
  countEqual: {
    'countEqual([1, 2, 1], 1)': 2,
    'countEqual([1, NULL], NULL)': 1,
    "countEqual(['a'], 'b')": 0,
  },
  arrayDifference: {
    'arrayDifference([1, 4, 9])': [0, 3, 5],
    'arrayDifference([5])': [0],
    'arrayDifference([1.5, 1])': [0, -0.5],
  },
  arrayIntersect: {
    'arrayIntersect([1, 2], [2, 3])': [2],
    'arrayIntersect([1], [2])': [],
    "arrayIntersect(['a', 'b'], ['b'], ['b', 'c'])": ['b'],
  },
  arrayFlatten: {
    'arrayFlatten([[1, 2], [3]])': [1, 2, 3],
    'arrayFlatten([1, 2])': [1, 2],
    'arrayFlatten([[1], []])': [1],
  },
  arrayCompact: {
    'arrayCompact([1, 1, 2, 2, 1])': [1, 2, 1],
    'arrayCompact([])': [],
    "arrayCompact(['a', 'a', 'b'])": ['a', 'b'],
  },
  arrayZip: {
    "arrayZip([1, 2], ['a', 'b'])": [
      [1, 'a'],
      [2, 'b'],
    ],
    "arrayZip(['a'], [1.5])": [['a', 1.5]],
    'arrayZip([1, 2], [3, 4], [5, 6])': [
      [1, 3, 5],
      [2, 4, 6],
    ],
  },
  arrayWithConstant: {
    'arrayWithConstant(3, 1)': [1, 1, 1],
    "arrayWithConstant(0, 'a')": [],
    "arrayWithConstant(2, 'a')": ['a', 'a'],
  },
  arrayEnumerate: {
    'arrayEnumerate([10, 20, 30])': [1, 2, 3],
    'arrayEnumerate([])': [],
    "arrayEnumerate(['a'])": [1],
  },
  arrayStringConcat: {
    "arrayStringConcat(['a', 'b'])": 'ab',
    "arrayStringConcat(['a', 'b'], ',')": 'a,b',
    "arrayStringConcat([], ',')": '',
  },
  arraySort: {
    'arraySort([3, 1, 2])': [1, 2, 3],
    "arraySort(['b', 'a', 'B'])": ['B', 'a', 'b'],
    'arraySort([])': [],
  },
  arrayReverseSort: {
    'arrayReverseSort([3, 1, 2])': [3, 2, 1],
    "arrayReverseSort(['b', 'a', 'B'])": ['b', 'a', 'B'],
    'arrayReverseSort([])': [],
  },
  arrayMap: {
    'arrayMap(x -> x + 1, [1, 2, 3])': [2, 3, 4],
    "arrayMap(x -> concat(x, '!'), ['a', 'b'])": ['a!', 'b!'],
    'arrayMap((x, y) -> x + y, [1, 2], [10, 20])': [11, 22],
  },
  arrayFilter: {
    'arrayFilter(x -> x > 1, [1, 2, 3])': [2, 3],
    "arrayFilter(x -> x = 'a', ['a', 'b'])": ['a'],
    'arrayFilter(x -> x > 1, [])': [],
  },
  arrayExists: { 'arrayExists(x -> x > 2, [1, 2, 3])': true, 'arrayExists(x -> x > 5, [1, 2])': false },
  arrayAll: { 'arrayAll(x -> x > 0, [1, 2, 3])': true, 'arrayAll(x -> x > 1, [1, 2])': false },
  arrayFirst: {
    'arrayFirst(x -> x > 1, [1, 2, 3])': 2,
    'arrayFirst(x -> x > 5, [1, 2])': 0,
    "arrayFirst(x -> x != 'a', ['a', 'b'])": 'b',
  },
  arrayLast: {
    'arrayLast(x -> x > 1, [1, 2, 3])': 3,
    'arrayLast(x -> x > 5, [1, 2])': 0,
    "arrayLast(x -> x != 'a', ['a', 'b', 'c'])": 'c',
  },
  arrayFirstIndex: { 'arrayFirstIndex(x -> x > 1, [1, 2, 3])': 2, 'arrayFirstIndex(x -> x > 5, [1, 2])': 0 },
  arrayLastIndex: { 'arrayLastIndex(x -> x > 1, [1, 2, 3])': 3, 'arrayLastIndex(x -> x > 5, [1, 2])': 0 },
  arrayCount: { 'arrayCount(x -> x > 1, [1, 2, 3])': 2, 'arrayCount(x -> x > 1, [])': 0 },
  arraySum: { 'arraySum([1, 2, 3])': 6, 'arraySum([1.5, 2])': 3.5, 'arraySum(x -> x > 1, [1, 2, 3])': 2 },
  arrayAvg: { 'arrayAvg([1, 2, 3])': 2, 'arrayAvg([1.5])': 1.5, 'arrayAvg(x -> x * 2, [1, 2])': 3 },
  arrayMin: { 'arrayMin([3, 1, 2])': 1, "arrayMin(['b', 'a'])": 'a', 'arrayMin([1.5, -2])': -2 },
  arrayMax: { 'arrayMax([3, 1, 2])': 3, "arrayMax(['b', 'a'])": 'b', 'arrayMax([1.5, -2])': 1.5 },
  arrayProduct: { 'arrayProduct([1, 2, 3])': 6, 'arrayProduct([2, -3])': -6, 'arrayProduct([0, 5])': 0 },
  arrayCumSum: {
    'arrayCumSum([1, 2, 3])': [1, 3, 6],
    'arrayCumSum([1.5, 2])': [1.5, 3.5],
    'arrayCumSum(x -> x * 2, [1, 2])': [2, 6],
  },
  arrayFold: {
    'arrayFold(acc, x -> acc + x, [1, 2, 3], toInt64(0))': 6,
    "arrayFold(acc, x -> concat(acc, x), ['a', 'b'], '')": 'ab',
    'arrayFold(acc, x, y -> acc + x * y, [1, 2], [3, 4], toInt64(0))': 11,
  },
  arrayFill: {
    'arrayFill(x -> x > 1, [1, 2, 0, 3, 1])': [1, 2, 2, 3, 3],
    'arrayFill(x -> not isNull(x), [1, NULL, 2, NULL])': [1, 1, 2, 2],
    'arrayFill(x -> x > 1, [])': [],
  },
  tupleElement: {
    "tupleElement((1, 'a'), 1)": 1,
    "tupleElement((1, 'a'), 2)": 'a',
    'tupleElement(((1, 2), 3), 1)': [1, 2],
  },
  map: {
    "map('a', 1, 'b', 2)": { a: 1, b: 2 },
    "map('a', 'x')": { a: 'x' },
    "map('a', [1, 2])": { a: [1, 2] },
  },
  mapFromArrays: {
    "mapFromArrays(['a', 'b'], [1, 2])": { a: 1, b: 2 },
    "mapFromArrays(['x'], ['y'])": { x: 'y' },
    "mapFromArrays(['a'], [1.5])": { a: 1.5 },
  },
  mapKeys: {
    "mapKeys(map('a', 1, 'b', 2))": ['a', 'b'],
    "mapKeys(map('x', 'y'))": ['x'],
    "mapKeys(mapFromArrays(['k'], [1]))": ['k'],
  },
  mapValues: {
    "mapValues(map('a', 1, 'b', 2))": [1, 2],
    "mapValues(map('x', 'y'))": ['y'],
    "mapValues(mapFromArrays(['k'], [1]))": [1],
  },
  mapContains: { "mapContains(map('a', 1), 'a')": true, "mapContains(map('a', 1), 'b')": false },
  JSONHas: { "JSONHas('{\"a\":1}', 'a')": true, "JSONHas('{\"a\":1}', 'b')": false },
  JSONLength: { "JSONLength('[1,2,3]')": 3, 'JSONLength(\'{"a":1,"b":2}\')': 2, "JSONLength('1')": 0 },
  JSONType: {
    'JSONType(\'{"a":1}\')': 'Object',
    "JSONType('{\"a\":1}', 'a')": 'Int64',
    'JSONType(\'{"a":"x"}\', \'a\')': 'String',
  },
  JSONExtract: {
    "JSONExtract('{\"a\":1}', 'a', 'Int64')": 1,
    "JSONExtract('{\"a\":\"x\"}', 'a', 'String')": 'x',
    "JSONExtract('{\"a\":1.5}', 'a', 'Float64')": 1.5,
  },
  JSONExtractString: {
    'JSONExtractString(\'{"a":"x"}\', \'a\')': 'x',
    "JSONExtractString('{\"a\":1}', 'a')": '1',
    "JSONExtractString('{\"a\":null}', 'a')": '',
  },
  JSONExtractInt: {
    "JSONExtractInt('{\"a\":5}', 'a')": 5,
    "JSONExtractInt('{\"a\":1.7}', 'a')": 1,
    "JSONExtractInt('{\"a\":null}', 'a')": 0,
  },
  JSONExtractUInt: {
    "JSONExtractUInt('{\"a\":5}', 'a')": 5,
    "JSONExtractUInt('{\"a\":-5}', 'a')": 0,
    'JSONExtractUInt(\'{"a":"7"}\', \'a\')': 7,
  },
  JSONExtractFloat: {
    "JSONExtractFloat('{\"a\":1.5}', 'a')": 1.5,
    "JSONExtractFloat('{\"a\":2}', 'a')": 2,
    "JSONExtractFloat('{}', 'a')": 0,
  },
  JSONExtractBool: {
    "JSONExtractBool('{\"a\":true}', 'a')": true,
    "JSONExtractBool('{\"a\":false}', 'a')": false,
  },
  JSONExtractRaw: {
    'JSONExtractRaw(\'{"a":"x"}\', \'a\')': '"x"',
    "JSONExtractRaw('{\"a\":[1,2]}', 'a')": '[1,2]',
    'JSONExtractRaw(\'{"a":{"b":1}}\', \'a\')': '{"b":1}',
  },
  JSONExtractArrayRaw: {
    'JSONExtractArrayRaw(\'{"a":[1,"x",{"b":2}]}\', \'a\')': ['1', '"x"', '{"b":2}'],
    "JSONExtractArrayRaw('[1,2]')": ['1', '2'],
    "JSONExtractArrayRaw('{}', 'a')": [],
  },
  JSONExtractKeys: {
    'JSONExtractKeys(\'{"a":1,"b":2}\')': ['a', 'b'],
    'JSONExtractKeys(\'{"a":{"x":1}}\', \'a\')': ['x'],
    "JSONExtractKeys('[]')": [],
  },
  JSONExtractKeysAndValuesRaw: {
    'JSONExtractKeysAndValuesRaw(\'{"a":1,"b":"x"}\')': [
      ['a', '1'],
      ['b', '"x"'],
    ],
    'JSONExtractKeysAndValuesRaw(\'{"a":{"x":[1, 2]}}\', \'a\')': [['x', '[1,2]']],
    "JSONExtractKeysAndValuesRaw('{}')": [],
  },
  JSONExtractKeysAndValues: {
    'JSONExtractKeysAndValues(\'{"a":1,"b":"x","c":null}\', \'String\')': [
      ['a', '1'],
      ['b', 'x'],
    ],
    'JSONExtractKeysAndValues(\'{"a":1.5,"b":"x","c":"7.5","d":true}\', \'Int64\')': [
      ['a', 1],
      ['c', 7],
      ['d', 1],
    ],
    'JSONExtractKeysAndValues(\'{"a":{"b":0,"c":null}}\', \'a\', \'Nullable(Bool)\')': [
      ['b', false],
      ['c', null],
    ],
    "JSONExtractKeysAndValues('[1]', 'Float64')": [],
  },
  recordingButton: {
    "recordingButton('s1')": ['__hx_tag', 'RecordingButton', 'sessionId', 's1'],
    'recordingButton(NULL)': ['__hx_tag', 'RecordingButton', 'sessionId', null],
  },
  sparkline: { 'sparkline([1, 2])': ['__hx_tag', 'Sparkline', 'data', [1, 2]] },
  JSON_VALUE: {
    'JSON_VALUE(\'{"a":"x"}\', \'$.a\')': 'x',
    'JSON_VALUE(\'{"a":{"b":1}}\', \'$.a.b\')': '1',
    "JSON_VALUE('{\"a\":1}', '$.b')": '',
  },
  isValidJSON: { 'isValidJSON(\'{"a":1}\')': true, "isValidJSON('abc')": false, 'isValidJSON(NULL)': null },
  JSONArrayLength: {
    "JSONArrayLength('[1,2,3]')": 3,
    "JSONArrayLength('[]')": 0,
    "JSONArrayLength('{}')": null,
  },
  arrayResize: {
    'arrayResize([1, 2, 3], 5)': [1, 2, 3, 0, 0],
    'arrayResize([1, 2, 3], -2)': [2, 3],
    'arrayResize([1], 3, 9)': [1, 9, 9],
  },
  arrayRotateLeft: {
    'arrayRotateLeft([1, 2, 3, 4], 1)': [2, 3, 4, 1],
    'arrayRotateLeft([1, 2, 3], -1)': [3, 1, 2],
    'arrayRotateLeft([1, 2, 3], 4)': [2, 3, 1],
  },
  arrayRotateRight: {
    'arrayRotateRight([1, 2, 3, 4], 1)': [4, 1, 2, 3],
    'arrayRotateRight([1, 2, 3, 4], 5)': [4, 1, 2, 3],
    'arrayRotateRight([1, 2, 3], -1)': [2, 3, 1],
  },
  arrayEnumerateUniq: {
    'arrayEnumerateUniq([10, 20, 10, 30])': [1, 1, 2, 1],
    "arrayEnumerateUniq(['a', 'a'])": [1, 2],
    'arrayEnumerateUniq([1, 1, 2], [1, 1, 2])': [1, 2, 1],
  },
  arrayReduce: {
    "arrayReduce('sum', [1, 2, 3])": 6,
    "arrayReduce('quantile(0.5)', [1, 2, 3])": 2,
    "arrayReduce('maxIf', [1, 2, 3], [1, 1, 0])": 2,
  },
  arraySplit: {
    'arraySplit((x, y) -> y, [1, 2, 3, 4, 5], [1, 0, 0, 1, 0])': [
      [1, 2, 3],
      [4, 5],
    ],
    'arraySplit(x -> x = 3, [1, 2, 3, 4])': [
      [1, 2],
      [3, 4],
    ],
    'arraySplit(x -> x > 9, [1, 2])': [[1, 2]],
  },
  arrayReverseSplit: {
    'arrayReverseSplit((x, y) -> y, [1, 2, 3, 4, 5], [1, 0, 0, 1, 0])': [[1], [2, 3, 4], [5]],
    'arrayReverseSplit(x -> x = 3, [1, 2, 3, 4])': [[1, 2, 3], [4]],
  },
  mapFilter: {
    "mapFilter((k, v) -> v > 1, map('a', 1, 'b', 2))": { b: 2 },
    "mapFilter((k, v) -> k = 'a', map('a', 1, 'b', 2))": { a: 1 },
    "mapFilter((k, v) -> v > 9, map('a', 1))": {},
  },
  mapApply: {
    "mapApply((k, v) -> (k, v * 10), map('a', 1, 'b', 2))": { a: 10, b: 20 },
    "mapApply((k, v) -> (upper(k), v + 1), map('a', 1))": { A: 2 },
  },
  mapUpdate: {
    "mapUpdate(map('a', 1, 'b', 2), map('b', 3, 'c', 4))": { a: 1, b: 3, c: 4 },
    "mapUpdate(map('a', 1), map('a', 2))": { a: 2 },
  },
};
