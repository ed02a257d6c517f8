import type { PropertyType, TypeInference } from '@exportd/dialect/schema';
import type { Property } from '@exportd/dialect/types';

/** The type of an undeclared property, and the sampled values that it was inferred from. */
export interface InferredType extends Property {
  readonly type: PropertyType;
  /** Null if the type has been declared since. */
  readonly sampled_values: number | null;
  /** Those that convert to the type. */
  readonly matching_values: number | null;
}

/** A query cannot be compiled before the types of these properties are known. */
class TypesNeeded extends Error {
  override readonly name = 'TypesNeeded';
  readonly properties: readonly Property[];

  constructor(properties: readonly Property[]) {
    super('The types of properties are needed.');
    this.properties = properties;
  }
}

/** The types that the statements of one request share. */
export interface QueryInference extends TypeInference {
  /** Compiles a statement. @throws TypesNeeded if it needs types that are not known yet */
  compile<Result>(compile: () => Result): Result;
}

/** Finds the types of undeclared properties. It leaves out those whose values have no common type. */
export type InferTypes = (properties: readonly Property[]) => Promise<readonly InferredType[]>;

/** A result, and the inferred types that it depends on. */
interface WithTypes<Result> {
  readonly result: Result;
  readonly types: readonly InferredType[];
}

/** Properties whose types a request may need. The text of any other is rejected. */
const maxProperties = 100;

/**
 * Answers a request by the text of all undeclared properties. If one of its statements rejects the text of a property, all are
 * answered again by the property's inferred type.
 */
export async function withInferredTypes<Result>(
  inferTypes: InferTypes,
  answer: (inference: QueryInference) => Promise<Result>,
): Promise<WithTypes<Result>> {
  const known = new Map<string, InferredType | null>();
  for (;;)
    try {
      const result = await answer(inferenceOf(known));
      return { result, types: [...known.values()].filter((type) => type !== null) };
    } catch (error) {
      if (!(error instanceof TypesNeeded)) throw error;
      const inferred = new Map((await inferTypes(error.properties)).map((type) => [keyOf(type), type]));
      for (const property of error.properties)
        known.set(keyOf(property), inferred.get(keyOf(property)) ?? null);
    }
}

/** An inference for texts that are checked and not run: every property has the types that its places need. */
export const anyType: TypeInference = { typeOf: () => undefined, request: () => true };

const keyOf = ({ scope, name }: Property): string => `${scope} ${name}`;

function inferenceOf(known: ReadonlyMap<string, InferredType | null>): QueryInference {
  const requested = new Map<string, Property>();
  const checkRequests = (): void => {
    if (requested.size > 0) throw new TypesNeeded([...requested.values()]);
  };
  return {
    typeOf: (property) => {
      const type = known.get(keyOf(property))?.type;
      return type === 'string' ? undefined : type;
    },
    request: (property) => {
      const key = keyOf(property);
      if (known.has(key) || known.size + requested.size >= maxProperties) return false;
      requested.set(key, property);
      return true;
    },
    compile: (compile) => {
      try {
        return compile();
      } finally {
        // Also instead of an error, which may only be that of a placeholder.
        checkRequests();
      }
    },
  };
}

const typeWords = { numeric: 'a number', boolean: 'a boolean', datetime: 'a time', string: 'text' } as const;

/** What a result says of the inferred types that it depends on; null without any. */
export function noticeOfTypes(types: readonly InferredType[]): string | null {
  const sentences = types.flatMap(({ scope, name, type, sampled_values, matching_values }) => {
    const property = `${scope === 'event' ? '' : `${scope}.`}properties.${name}`;
    return sampled_values === null
      ? []
      : [`${property} is read as ${typeWords[type]}, as ${matching_values} of ${sampled_values} values are.`];
  });
  if (sentences.length === 0) return null;
  return [...sentences, '"exportd property define" sets another type.'].join(' ');
}
