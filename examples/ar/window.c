#include "window.h"

#include <stdlib.h>

#include "opencl.h"

#ifdef AR_WINDOW

#include <SDL.h>

struct window {
        SDL_Window *window;
        int width, height;
};

struct window *window_open(int width, int height)
{
        struct window *w = allocate(1, sizeof(*w));
        *w = (struct window){ .width = width, .height = height };
        if (SDL_Init(SDL_INIT_VIDEO) == 0)
                w->window = SDL_CreateWindow("SpanCL: augmented reality", SDL_WINDOWPOS_CENTERED,
                                             SDL_WINDOWPOS_CENTERED, width, height, 0);
        if (!w->window)
                die("--window: %s", SDL_GetError());
        return w;
}

void window_close(struct window *w)
{
        if (!w)
                return;
        SDL_DestroyWindow(w->window);
        SDL_Quit();
        free(w);
}

bool window_show(struct window *w, const uint8_t *rgba)
{
        SDL_Event event;
        SDL_Surface *picture =
                SDL_CreateRGBSurfaceWithFormatFrom((void *)(uintptr_t)rgba, w->width, w->height, 32,
                                                   w->width * 4, SDL_PIXELFORMAT_RGBA32);
        SDL_Surface *screen = SDL_GetWindowSurface(w->window);
        if (!picture || !screen || SDL_BlitSurface(picture, NULL, screen, NULL) != 0 ||
            SDL_UpdateWindowSurface(w->window) != 0)
                die("--window: %s", SDL_GetError());
        SDL_FreeSurface(picture);
        while (SDL_PollEvent(&event))
                if (event.type == SDL_QUIT)
                        return false;
        return true;
}

#else

struct window *window_open(int width, int height)
{
        (void)width;
        (void)height;
        die("--window: this program was built without SDL2");
}

void window_close(struct window *w)
{
        (void)w;
}

bool window_show(struct window *w, const uint8_t *rgba)
{
        (void)w;
        (void)rgba;
        return false;
}

#endif
