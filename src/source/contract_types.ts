import type { SourceRelation } from '@exportd/dialect/schema';
import { contractCasts, type RelationRole, sourceContract, unconvertedTypes } from './contract.ts';

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * A relation whose columns have the types of the contract: others are converted as exports convert them. PostgreSQL flattens the
 * subquery, so that the indexes of columns that are not converted are used.
 */
export function withContractTypes(source: SourceRelation, role: RelationRole): SourceRelation {
  const types = new Map(
    sourceContract[role].columns
      .filter(({ name, type }) => {
        const found = source.columns.get(name);
        return found !== undefined && !unconvertedTypes[type].includes(found);
      })
      .map(({ name, type }) => [name, contractCasts[type]]),
  );
  if (types.size === 0) return source;
  const selected = [...source.columns.keys()].map((name) => {
    const type = types.get(name);
    return type === undefined ? quoteName(name) : `${quoteName(name)}::${type} as ${quoteName(name)}`;
  });
  const columns = [...source.columns].map(([name, found]): [string, string] => {
    const type = sourceContract[role].columns.find((column) => column.name === name)?.type;
    // A cast to `json` is read like a column of that type.
    return [name, types.has(name) ? (type === 'jsonb' ? 'json' : (type ?? found)) : found];
  });
  return {
    ...source,
    relation: `(select ${selected.join(', ')} from ${source.relation}) as ${quoteName(`typed_${role}`)}`,
    columns: new Map(columns),
  };
}
