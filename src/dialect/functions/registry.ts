import { nearestName } from '../nearest_name.ts';
import { aggregates, windowFunctions } from './aggregates.ts';
import { arrayFunctions } from './arrays.ts';
import { conditionFunctions } from './conditions.ts';
import { conversionFunctions } from './conversions.ts';
import { dateFunctions } from './dates.ts';
import type { FunctionDefinition } from './definition.ts';
import { documentFunctions } from './documents.ts';
import { numberFunctions } from './numbers.ts';
import { textFunctions } from './texts.ts';

/** All functions but those made by a suffix. */
export const functionDefinitions: readonly FunctionDefinition[] = [
  ...aggregates,
  ...windowFunctions,
  ...numberFunctions,
  ...conditionFunctions,
  ...conversionFunctions,
  ...dateFunctions,
  ...textFunctions,
  ...arrayFunctions,
  ...documentFunctions,
];

const byName = new Map(functionDefinitions.map((definition) => [definition.name, definition]));
const byLowerName = new Map(
  functionDefinitions
    .filter(({ anyCase }) => anyCase)
    .map((definition) => [definition.name.toLowerCase(), definition]),
);

/** Other names that analysts know. */
const otherNames: Readonly<Record<string, string>> = {
  ceiling: 'ceil',
  truncate: 'trunc',
  substr: 'substring',
  mid: 'substring',
  lcase: 'lower',
  ucase: 'upper',
  character_length: 'lengthUTF8',
  char_length: 'lengthUTF8',
  dateadd: 'dateAdd',
  datesub: 'dateSub',
  datediff: 'dateDiff',
  flatten: 'arrayFlatten',
  toInt64: 'toInt',
  toInt32: 'toInt',
  toFloat64: 'toFloat',
  toFloat32: 'toFloat',
  stddev_pop: 'stddevPop',
  stddev_samp: 'stddevSamp',
  var_pop: 'varPop',
  var_samp: 'varSamp',
  jsonb_agg: 'json_agg',
};

/** A function as a call means it. */
export interface FoundFunction {
  readonly definition: FunctionDefinition;
  /** What the name ends in beyond the definition's: `sumIf` takes a condition as its last argument. */
  readonly suffix: 'If' | null;
}

/** The function of a name as it is written in a call, or undefined. */
export function findFunction(name: string): FoundFunction | undefined {
  const plain = definitionOf(name);
  if (plain !== undefined) return { definition: plain, suffix: null };
  const stem = name.endsWith('If') ? definitionOf(name.slice(0, -2)) : undefined;
  return stem?.kind === 'aggregate' ? { definition: stem, suffix: 'If' } : undefined;
}

function definitionOf(name: string): FunctionDefinition | undefined {
  const meant = Object.hasOwn(otherNames, name) ? (otherNames[name] ?? name) : name;
  return byName.get(meant) ?? byLowerName.get(meant.toLowerCase());
}

/** What stands in an error about a function that is not there: the one that may have been meant, or null. */
export function suggestFunction(name: string): string | null {
  const near = nearestName(name, [...byName.keys(), ...Object.keys(otherNames)]);
  return near === null ? null : `Perhaps you meant '${near}(...)'?`;
}
