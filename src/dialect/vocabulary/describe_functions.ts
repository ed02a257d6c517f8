import type { ArgumentType, FunctionDefinition, FunctionKind } from '../functions/function_definition.ts';
import { functionDefinitions } from '../functions/registry.ts';

/** A function of the dialect as an editor shows it. */
export interface DescribedFunction {
  readonly name: string;
  readonly kind: FunctionKind;
  /** The types of its arguments and of its result: `(string, [integer]) → string`. */
  readonly signature: string;
  readonly description: string;
}

/** The functions that queries can call, without those that combinators form. */
export const describeFunctions = (): readonly DescribedFunction[] =>
  functionDefinitions
    .filter(({ unsupported }) => unsupported === null)
    .map((definition) => ({
      name: definition.name,
      kind: definition.kind,
      signature: signatureOf(definition),
      description: definition.description,
    }));

function signatureOf({
  parameterTypes,
  argumentTypes,
  returns,
}: Pick<FunctionDefinition, 'parameterTypes' | 'argumentTypes' | 'returns'>): string {
  const parameters = parameterTypes.length === 0 ? '' : `(${listOf(parameterTypes)})`;
  return `${parameters}(${listOf(argumentTypes)}) → ${returns}`;
}

/** `string, [integer], any…`: optional types in brackets, and an ellipsis after one that repeats. */
const listOf = (types: readonly ArgumentType[]): string =>
  types
    .map((type) => {
      if (type.endsWith('...')) return `${type.slice(0, -3)}…`;
      return type.endsWith('?') ? `[${type.slice(0, -1)}]` : type;
    })
    .join(', ');
