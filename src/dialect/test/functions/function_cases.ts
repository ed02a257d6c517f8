import { aggregateCases } from './cases/aggregates.ts';
import type { CasesByFunction } from './cases/case_rows.ts';
import { collectionCases } from './cases/collections.ts';
import { stringCases } from './cases/strings.ts';
import { timeCases } from './cases/times.ts';
import { valueCases } from './cases/values.ts';

/** The cases of all functions. */
export const functionCases: CasesByFunction = {
  ...aggregateCases,
  ...collectionCases,
  ...stringCases,
  ...timeCases,
  ...valueCases,
};
