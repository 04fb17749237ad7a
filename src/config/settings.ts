/** The schema as a flat list of settings: for environment variables, `headgate config`, the documentation and the tests. */
import { z } from 'zod'
import { configSchema } from './schema.ts'

export interface Setting {
  /** `listeners[].basePort`: `[]` stands for any index. */
  readonly key: string
  /** The same as a path; `'[]'` stands for any index. */
  readonly path: readonly string[]
  readonly description: string
  /** The default as one would write it; undefined if there is none. */
  readonly default: unknown
  readonly required: boolean
  /** JSON types a value may have: string, number, integer, boolean, array, object. */
  readonly types: readonly string[]
  readonly values: readonly string[] | undefined
}

export interface JsonSchema {
  type?: string | string[]
  description?: string
  default?: unknown
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  enum?: string[]
  additionalProperties?: boolean | JsonSchema
}

/** JSON Schema (draft 2020-12) of what people write, for editors. */
export function jsonSchema(): JsonSchema {
  return z.toJSONSchema(configSchema, { io: 'input' }) as JsonSchema
}

let cached: readonly Setting[] | undefined

/** Every setting, in the order of the schema. */
export function settings(): readonly Setting[] {
  cached ??= walk(jsonSchema(), [], false)
  return cached
}

function walk(schema: JsonSchema, path: readonly string[], required: boolean): Setting[] {
  if (schema.properties) {
    return Object.entries(schema.properties).flatMap(([name, child]) =>
      walk(child, [...path, name], schema.required?.includes(name) ?? false),
    )
  }
  if (schema.items?.properties) return walk(schema.items, [...path, '[]'], required)
  const types = [schema, ...(schema.anyOf ?? [])].flatMap((part) => part.type ?? [])
  return [
    {
      key: path.join('.').replaceAll('.[]', '[]'),
      path,
      description: schema.description ?? '',
      default: schema.default,
      required,
      types,
      values: schema.enum,
    },
  ]
}

/** Names that may stand at `path` (indices as numbers or `'[]'`); empty where nothing is known. */
export function namesAt(path: readonly PropertyKey[]): string[] {
  let schema: JsonSchema | undefined = jsonSchema()
  for (const part of path) schema = schema?.items ?? schema?.properties?.[String(part)] ?? anyProperty(schema)
  return Object.keys(schema?.properties ?? {})
}

/** What stands under every key of a map. */
function anyProperty(schema: JsonSchema | undefined): JsonSchema | undefined {
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
}
