/** A value that JSON can hold, for members that others than the domain understand. */
export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [member: string]: JsonValue };
