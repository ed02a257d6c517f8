/** The kinds of types that the reference interpreter knows. */
export type ReferenceKind =
  | 'integer'
  | 'float'
  | 'decimal'
  | 'string'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'uuid'
  | 'interval'
  | 'array'
  | 'null';

/** A type of the reference interpreter. */
export interface ReferenceType {
  readonly kind: ReferenceKind;
  readonly nullable: boolean;
  /** The type of an array's items. */
  readonly item?: ReferenceType;
  /** Whether an interval consists of days and months or of elapsed time. */
  readonly unit?: 'calendar' | 'clock';
  /** Whether null only stands for the default of the type, in rows that an outer join did not match. */
  readonly unmatched?: boolean;
}

export const typeOf = (kind: ReferenceKind, nullable = false): ReferenceType => ({ kind, nullable });
export const arrayOf = (item: ReferenceType): ReferenceType => ({ kind: 'array', nullable: false, item });
export const withNull = ({ kind, item, unit }: ReferenceType, nullable = true): ReferenceType => ({
  kind,
  nullable,
  ...(item !== undefined && { item }),
  ...(unit !== undefined && { unit }),
});
export const itemOf = (type: ReferenceType): ReferenceType => type.item ?? typeOf('null', true);

const numbers: readonly ReferenceKind[] = ['integer', 'decimal', 'float'];
export const isNumber = (kind: ReferenceKind): boolean => numbers.includes(kind);

/** The type that two types share; undefined if there is none. */
export function commonType(left: ReferenceType, right: ReferenceType): ReferenceType | undefined {
  const nullable = left.nullable || right.nullable;
  if (left.kind === 'null') return withNull(right);
  if (right.kind === 'null') return withNull(left);
  if (left.kind === 'array' && right.kind === 'array') {
    const item = commonType(itemOf(left), itemOf(right));
    return item === undefined ? undefined : { kind: 'array', nullable, item };
  }
  if (left.kind === right.kind) return left.unit === right.unit ? withNull(left, nullable) : undefined;
  const kinds = [left.kind, right.kind];
  if (kinds.every((kind) => isNumber(kind)))
    return typeOf(kinds.includes('float') ? 'float' : 'decimal', nullable);
  if (kinds.includes('date') && kinds.includes('datetime')) return typeOf('datetime', nullable);
  if (kinds.includes('boolean') && kinds.includes('integer')) return typeOf('integer', nullable);
  if (kinds.includes('boolean') && kinds.includes('float')) return typeOf('float', nullable);
  return undefined;
}
